package distributor

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/fetch/fetchtest"
	"github.com/trellis-addons/trellis/test/bench/bar"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/given"
)

const (
	gitCatalogues = 100
	gitInterval   = 10 * time.Second
	observed      = 3 * gitInterval
	atOnceBar     = 4
)

// counter stands before a git server: it counts the requests under way, and notes when each repository was looked at.
type counter struct {
	mutex         sync.Mutex
	running, most int
	looks         map[string][]time.Time
}

func (c *counter) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.begin(r)
		defer c.end()
		next.ServeHTTP(w, r)
	})
}

func (c *counter) begin(r *http.Request) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.running++
	c.most = max(c.most, c.running)
	if repository, ok := strings.CutSuffix(r.URL.Path, "/info/refs"); ok {
		c.looks[repository] = append(c.looks[repository], time.Now())
	}
}

func (c *counter) end() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.running--
}

// BenchmarkGitHost has 100 catalogues in git look at one host, each at a repository of its own, and counts at the server.
func BenchmarkGitHost(b *testing.B) {
	for b.Loop() {
		w := newPlatform(b, 0)
		counter := &counter{looks: map[string][]time.Time{}}
		server := fetchtest.ServeGit(b, counter.wrap)
		expect.Create(w.b, w.master, given.MarkedSecret(v1.UseSource, platform, "ca", map[string][]byte{"ca.crt": server.CA}))
		for i := range gitCatalogues {
			expect.Create(w.b, w.master, gitCatalogue(b, server, i))
		}
		begin := time.Now()
		w.startManager("--allow-source-cidrs=127.0.0.0/8")
		w.awaitFetched()
		bar.None(b, "ms-to-100-git-catalogues", milliseconds(time.Since(begin)))
		counter.observe(b)
	}
}

func gitCatalogue(b *testing.B, server *fetchtest.Git, i int) *v1.AddonCatalogue {
	repository := server.Repository(b, fmt.Sprintf("catalogue-%d", i))
	repository.Commit("main", map[string]string{
		"addons.yaml": fmt.Sprintf("- name: addon-%d\n  versions: [{version: 1.0.0}, {version: 1.1.0}]\n", i),
	})
	made := given.InGit(platform, fmt.Sprintf("catalogue-%d", i), repository.URL, "ca")
	made.Spec.Git.Interval = &metav1.Duration{Duration: gitInterval}
	return made
}

func (w *platformWorld) awaitFetched() {
	w.b.Helper()
	expect.Eventually(w.b, longRounds, func() error {
		var list v1.AddonCatalogueList
		if err := w.master.List(w.b.Context(), &list, client.InNamespace(platform)); err != nil {
			return err
		}
		fetched := 0
		for i := range list.Items {
			if expect.Condition(&list.Items[i], v1.ConditionFetched, "True", v1.ReasonFetched) == nil {
				fetched++
			}
		}
		if fetched != gitCatalogues {
			return fmt.Errorf("%d catalogues are fetched", fetched)
		}
		return nil
	})
}

// observe watches three intervals. Looks are at least nine tenths of an interval apart, which is what the jitter allows;
// a late timer can only make it more.
func (c *counter) observe(b *testing.B) {
	since := time.Now()
	timer := time.NewTimer(observed)
	defer timer.Stop()
	<-timer.C
	c.mutex.Lock()
	defer c.mutex.Unlock()
	fewest, mostLooks, hasty := len(c.looks)*100, 0, 0
	for _, times := range c.looks {
		looks := 0
		for i, at := range times {
			if at.Before(since) {
				continue
			}
			looks++
			if i > 0 && at.Sub(times[i-1]) < gitInterval*9/10-500*time.Millisecond {
				hasty++
			}
		}
		fewest, mostLooks = min(fewest, looks), max(mostLooks, looks)
	}
	bar.AtMost(b, "requests-at-once", float64(c.most), atOnceBar)
	bar.AtLeast(b, "fewest-looks-in-3-intervals", float64(fewest), 2)
	bar.AtMost(b, "most-looks-in-3-intervals", float64(mostLooks), 4)
	bar.Exactly(b, "looks-too-early", float64(hasty), 0)
	bar.Exactly(b, "repositories", float64(len(c.looks)), gitCatalogues)
}
