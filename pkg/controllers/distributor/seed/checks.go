package seed

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

// checkerGone is how long a seed counts as a checker of sources after the last change of its report, which changes
// every five minutes. After that, other seeds check its share.
const checkerGone = 15 * time.Minute

// Checkers are the seeds that check sources, as their reports show.
type Checkers struct {
	clock clock.PassiveClock
	// within is the time in which a new seed reports for the first time.
	within time.Duration

	mutex sync.Mutex
	seen  map[string]sign
	// joined is the time at which the last new seed was added.
	joined time.Time
	// asked has all seeds, and whether each was asked, or did not answer, since this process started.
	asked map[string]bool
}

// sign is the last sign of life of a checker, and when it changed.
type sign struct {
	text string
	at   time.Time
}

// NewCheckers returns Checkers without seeds. A new seed that checks reports for the first time within that duration.
func NewCheckers(clock clock.PassiveClock, within time.Duration) *Checkers {
	return &Checkers{clock: clock, within: within, seen: map[string]sign{}, asked: map[string]bool{}}
}

func (c *Checkers) saw(seed, text string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if before, known := c.seen[seed]; !known || before.text != text {
		c.seen[seed] = sign{text, c.clock.Now()}
	}
}

func (c *Checkers) forget(seed string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	delete(c.seen, seed)
}

// tried notes that a seed was asked, or did not answer, and says whether it was the last one.
func (c *Checkers) tried(seed string) (last bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if asked, exists := c.asked[seed]; asked || !exists {
		return false
	}
	c.asked[seed] = true
	return c.all()
}

func (c *Checkers) all() bool {
	for _, asked := range c.asked {
		if !asked {
			return false
		}
	}
	return true
}

// Only sets which seeds exist.
func (c *Checkers) Only(seeds []string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	before := c.asked
	c.asked = map[string]bool{}
	for _, seed := range seeds {
		asked, known := before[seed]
		c.asked[seed] = asked
		if !known {
			c.joined = c.clock.Now()
		}
	}
	maps.DeleteFunc(c.seen, func(seed string, _ sign) bool { return !slices.Contains(seeds, seed) })
}

// Names are the seeds that check sources at present, sorted. Result all is false if some seeds were not asked yet.
func (c *Checkers) Names() (names []string, all bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if !c.all() {
		return nil, false
	}
	for seed, last := range c.seen {
		if c.clock.Since(last.at) < checkerGone {
			names = append(names, seed)
		}
	}
	slices.Sort(names)
	return names, true
}

// Awaited is the remaining time in which a new seed may send its first report.
func (c *Checkers) Awaited() time.Duration {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return max(c.joined.Add(c.within).Sub(c.clock.Now()), 0)
}

// readChecks reads the seed's findings about sources, and writes the checkers to the seed. It says whether either
// changed. A failure here is no failure of the seed: others take its share.
func (w *worker) readChecks(ctx context.Context) (changed bool) {
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Platform, Name: v1.ConfigMapSourceChecks}}
	err := w.session.client.Get(ctx, client.ObjectKeyFromObject(object), object)
	if apierrors.IsNotFound(err) {
		w.Checkers.forget(w.name)
		changed, w.checks = w.checks != nil, nil
		return changed
	}
	if err != nil {
		w.logChecks(ctx, Describe(err))
		return false
	}
	found := catalogue.DecodeSourceChecks(object.Data)
	w.Checkers.saw(w.name, found.Seen)
	before := w.checks
	w.checks = found
	changed = before == nil || !maps.Equal(before.Good, found.Good) || !maps.Equal(before.Unrendered, found.Unrendered) ||
		!maps.Equal(before.Bad, found.Bad)
	changed = w.Checkers.tried(w.name) || changed
	names, all := w.Checkers.Names()
	share := catalogue.SourceShare{Seed: w.name, Seeds: names}.Encode()
	if !all || object.Data[v1.SourceShare] == share {
		return changed
	}
	unshared := object.DeepCopy()
	if object.Data == nil {
		object.Data = map[string]string{}
	}
	object.Data[v1.SourceShare] = share
	err = w.session.client.Patch(ctx, object, client.MergeFrom(unshared))
	if err != nil {
		w.logChecks(ctx, Describe(err))
		return changed
	}
	w.checksProblem = ""
	return true
}

// logChecks logs once why a seed's checks of sources can't be read or written.
func (w *worker) logChecks(ctx context.Context, problem string) {
	if problem != w.checksProblem {
		log.FromContext(ctx).Info("ConfigMap addon-source-checks of a seed can't be read or patched, so its checks of sources are ignored: "+
			"compare the rights of its kubeconfig with deploy/seed/rights.yaml", "seed", w.name, "problem", problem)
	}
	w.checksProblem = problem
}
