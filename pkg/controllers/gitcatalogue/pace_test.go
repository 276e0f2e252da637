package gitcatalogue_test

import (
	"fmt"
	"net/http"
	"path"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/controllers/gitcatalogue"
	"github.com/trellis-addons/trellis/test/expect"
)

// muchOf is a commit whose writes take more than a minute: 64 add-ons of 100 versions.
func muchOf(minor int) map[string]string {
	files := map[string]string{}
	for i := range 64 {
		var pairs []string
		for j := range 100 {
			pairs = append(pairs, fmt.Sprintf("addon-%d", i), fmt.Sprintf("1.%d.%d", minor, j))
		}
		files[fmt.Sprintf("%d.yaml", i)] = file(pairs...)
	}
	return files
}

// Red when a repository whose commits change everything has the manager write megabytes to the master with each look, or when such a
// commit does not come after a time.
func TestACommitThatChangesMuchWaitsForTheOneBefore(t *testing.T) {
	w := newWorld(t)
	first := w.commit(muchOf(0))
	w.start("", "")
	object := w.catalogue("platform")
	expect.Create(w.t, w.client, object)
	w.expectFetched(object, "True", v1.ReasonFetched)

	second := w.commit(muchOf(1))
	w.look(object)
	reported := w.expectFetched(object, "False", v1.ReasonDistributing)
	if !strings.Contains(reported, "commit "+second+" waits until ") || !strings.Contains(reported, "of commit "+first+" stay") {
		t.Error(reported)
	}
	w.asking.Step(5 * time.Minute)
	w.look(object)
	w.expectFetched(object, "True", v1.ReasonFetched)
	expect.Get(w.t, w.client, client.ObjectKeyFromObject(object), object)
	if object.Status.Revision != second {
		t.Errorf("it is at commit %s", object.Status.Revision)
	}
}

// Red when a commit that a quota refuses is tried again with each look, has another reason meanwhile, or is not taken once there is room and
// the time of its try is over.
func TestACommitThatAQuotaRefusesHasItsPace(t *testing.T) {
	w := newWorld(t)
	commit, object, limit := w.commit(muchOf(0)), w.catalogue("platform"), w.quota()
	expect.Create(w.t, w.client, object)
	limit("1", "1")
	w.start("", "")
	w.expectFetched(object, "False", v1.ReasonTooLarge, "commit "+commit+" is not completely applied")
	limit("100", "1")
	w.look(object)
	w.steady(func() error {
		if found := w.children(object); len(found) > 0 {
			return fmt.Errorf("it was tried again: there are %d add-ons", len(found))
		}
		expect.Read(w.t, w.client, object)
		return expect.Condition(object, v1.ConditionFetched, "False", v1.ReasonTooLarge, "is not completely applied")
	})
	w.asking.Step(5 * time.Minute)
	w.look(object)
	w.expectFetched(object, "True", v1.ReasonFetched)
	if found := w.children(object); len(found) != 64 {
		t.Errorf("there are %d add-ons", len(found))
	}
}

// Red when what the API server says of a commit, which can be megabytes, is kept as a whole, or when the commit is not tried as soon as the
// time of its try is over.
func TestARefusalIsShortAndEndsWithItsTime(t *testing.T) {
	var spec v1.AddonCatalogueSpec
	for i := range 10_000 {
		spec.Addons = append(spec.Addons, v1.Addon{Name: v1.AddonName(fmt.Sprintf("addon-with-quite-a-long-name-%d", i))})
	}
	at := clocktesting.NewFakeClock(time.Now())
	reported := loop.Wait(v1.ConditionFetched, v1.ReasonInvalid, strings.Repeat("x", 2<<20), 15*time.Minute)
	pace := gitcatalogue.Refused(at, spec, reported)
	got := pace()
	if got == nil || len(got.Message) > 1<<10 || got.Recheck <= 0 || got.Recheck >= reported.Recheck {
		t.Fatalf("got %+v", got)
	}
	at.Step(got.Recheck)
	if again := pace(); again != nil {
		t.Errorf("then the outcome is %+v", again)
	}
}

// before does something before each call of a kind that is passed on.
type before struct {
	next http.RoundTripper
	do   func(*http.Request)
}

func (b before) RoundTrip(request *http.Request) (*http.Response, error) {
	b.do(request)
	return b.next.RoundTrip(request)
}

// Red when a commit whose writes fail half-way is not completed at once, or when the next commit waits for the second half of the writes alone.
func TestACommitThatIsPartlyWrittenCountsAsAWhole(t *testing.T) {
	w := newWorld(t)
	var updates, conflicts atomic.Int32
	w.wrap = func(next http.RoundTripper) http.RoundTripper {
		return before{next, func(r *http.Request) {
			folder, name := path.Split(r.URL.Path)
			isOurs := r.Method == http.MethodPut && !r.URL.Query().Has("dryRun") && strings.HasSuffix(folder, "/"+w.platform+"/addoncatalogues/")
			if isOurs && updates.Add(1) == 32 {
				conflicts.Add(1)
				one := &v1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Namespace: w.platform, Name: name}}
				expect.Annotate(w.t, w.client, one, "test.example.com/x", "y")
			}
		}}
	}
	w.commit(muchOf(0))
	began := w.asking.Now()
	w.start("", "")
	object := w.catalogue("platform")
	expect.Create(w.t, w.client, object)
	w.expectFetched(object, "True", v1.ReasonFetched)
	rest := func() time.Time {
		_, reported, _ := strings.Cut(w.expectFetched(object, "False", v1.ReasonDistributing, "waits until"), "waits until ")
		until, err := time.Parse(time.TimeOnly, strings.Split(reported, ",")[0])
		expect.NoError(t, err)
		return until
	}
	second := w.commit(muchOf(1))
	w.look(object)
	first := rest()
	w.asking.Step(5 * time.Minute)
	w.look(object)
	written := w.asking.Now()
	w.expectFetched(object, "True", v1.ReasonFetched)
	expect.Read(t, w.client, object)
	if conflicts.Load() != 1 || object.Status.Revision != second {
		t.Fatalf("%d writes had a conflict, and it is at commit %s", conflicts.Load(), object.Status.Revision)
	}
	w.commit(muchOf(2))
	w.look(object)
	if got, want := rest().Sub(first), written.Sub(began); (got+24*time.Hour)%(24*time.Hour) != want {
		t.Errorf("the wait after the second commit ends %s after that after the first one, want %s", got, want)
	}
}
