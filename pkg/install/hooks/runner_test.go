package hooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
)

var errKilled = errors.New("the process is dead")

// killer ends a process at its n-th write, before or after the write is done; 0 is never. A killed process makes no
// more calls.
type killer struct {
	next   http.RoundTripper
	n      int
	after  bool
	count  int
	killed bool
}

func (k *killer) write(do func() error) error {
	if k.killed {
		return errKilled
	}
	if k.count++; k.count == k.n {
		k.killed = true
		if k.after {
			_ = do()
		}
		return errKilled
	}
	return do()
}

// RoundTrip implements http.RoundTripper.
func (k *killer) RoundTrip(request *http.Request) (answer *http.Response, err error) {
	do := func() error {
		answer, err = k.next.RoundTrip(request)
		return err
	}
	switch {
	case request.Method != http.MethodGet:
		failed := k.write(do)
		if failed != nil && answer != nil {
			_ = answer.Body.Close()
			answer = nil
		}
		return answer, failed
	case k.killed:
		return nil, errKilled
	}
	return answer, do()
}

// hookStory is one release with hooks in its own namespace, and the seed's copy of its record.
type hookStory struct {
	t         *testing.T
	client    client.Client
	namespace string
	stored    []byte
	// jobs are the UIDs of all Jobs that were ever seen, by name.
	jobs map[string]map[types.UID]bool
}

func newHookStory(t *testing.T, namespace string, hooks ...Hook) *hookStory {
	t.Helper()
	s := &hookStory{t: t, client: fleet.InNamespace(t, "seed", namespace), namespace: namespace, jobs: map[string]map[types.UID]bool{}}
	for i := range hooks {
		hooks[i].Object = json.RawMessage(strings.ReplaceAll(string(hooks[i].Object), "NAMESPACE", namespace))
	}
	s.save(&Set{Action: ActionInstall, Hooks: hooks})
	return s
}

func (s *hookStory) owner() ownership.Owner {
	return ownership.Owner{ClusterUID: "uid", Installation: s.namespace}
}

// revision is the one that hooks run for, by the seed's copy.
func (s *hookStory) revision(record *Set) Revision {
	return Revision{
		Set: record, Owner: s.owner(), TargetNamespace: s.namespace, Shown: unshown{},
		Release: &ownership.HelmMarks{ReleaseName: "web", ReleaseNamespace: s.namespace},
		Number:  1, Time: metav1.NewTime(time.Unix(1800000000, 0)),
	}
}

// unshown is for stories without helm's view.
type unshown struct{}

func (unshown) Pending()      {}
func (unshown) Failed(string) {}
func (unshown) Deployed()     {}

func (s *hookStory) save(record *Set) {
	s.t.Helper()
	stored, err := json.Marshal(record)
	expect.NoError(s.t, err)
	s.stored = stored
}

func (s *hookStory) record() *Set {
	s.t.Helper()
	record := &Set{}
	expect.NoError(s.t, json.Unmarshal(s.stored, record))
	return record
}

// live runs a process until the event is over or the process is killed. Jobs succeed as soon as they are seen.
func (s *hookStory) live(kill *killer) (done bool) {
	s.t.Helper()
	config := rest.CopyConfig(fleet.Shared().Cluster("seed").Config)
	discoverer, err := discovery.NewDiscoveryClientForConfig(config)
	expect.NoError(s.t, err)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		kill.next = next
		return kill
	})
	remote, err := dynamic.NewForConfig(config)
	expect.NoError(s.t, err)
	record := s.record()
	runner := Runner{
		Target:  calls.Target{Dynamic: remote, Mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discoverer))},
		Timeout: time.Minute, Now: time.Now(),
		Save: func(context.Context) error {
			return kill.write(func() error {
				s.save(record)
				return nil
			})
		},
	}
	for range 100 {
		progress, err := runner.Run(s.t.Context(), s.revision(record), ActionInstall.Pre())
		s.endJobs()
		switch {
		case kill.killed:
			return false
		case err != nil:
			s.t.Fatal(err)
		case progress.Failed != "":
			s.t.Fatal(progress.Failed)
		case progress.Done:
			return true
		}
	}
	s.t.Fatal("it never comes to an end")
	return false
}

// collect deletes a Job that waits for the deletion of its Pods, as the garbage collector does.
func (s *hookStory) collect(job *batchv1.Job) {
	s.t.Helper()
	expect.Read(s.t, s.client, job)
	job.Finalizers = nil
	expect.Update(s.t, s.client, job)
}

// endJobs makes all Jobs succeed.
func (s *hookStory) endJobs() {
	s.t.Helper()
	var list batchv1.JobList
	expect.List(s.t, s.client, &list, client.InNamespace(s.namespace))
	for i := range list.Items {
		job := &list.Items[i]
		if s.jobs[job.Name] == nil {
			s.jobs[job.Name] = map[types.UID]bool{}
		}
		s.jobs[job.Name][job.UID] = true
		if job.DeletionTimestamp != nil {
			s.collect(job)
			continue
		}
		if job.Status.CompletionTime != nil {
			continue
		}
		now := metav1.Now()
		job.Status.StartTime, job.Status.CompletionTime, job.Status.Succeeded = &now, &now, 1
		for _, kind := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
			job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now})
		}
		expect.UpdateStatus(s.t, s.client, job)
	}
}

func jobHook(name string, weight int, policies ...string) Hook {
	return Hook{Path: name, Events: []string{"pre-install"}, Weight: weight, DeletePolicies: policies, Object: fmt.Appendf(nil,
		`{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":%q,"namespace":"NAMESPACE"},"spec":{"template":{"spec":`+
			`{"restartPolicy":"Never","containers":[{"name":"a","image":"a"}]}}}}`, name)}
}

// A process killed at any write, before or after it, leaves the state that the next one needs: each Job is created
// once, and the event completes. It fails if a created object is not recognized by its annotation, and if success is
// not on record before delete policies are applied.
func TestHooksSurviveKills(t *testing.T) {
	hooks := func() []Hook {
		account := Hook{Path: "account", Events: []string{"pre-install"}, Weight: -1, DeletePolicies: []string{DeleteSucceeded}, Object: []byte(
			`{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"worker","namespace":"NAMESPACE"}}`)}
		return []Hook{jobHook("second", 2, DeleteSucceeded), jobHook("first", 1, DeleteSucceeded), account}
	}
	boundaries := 0
	for n := 1; ; n++ {
		ended := false
		for _, after := range []bool{false, true} {
			name := fmt.Sprintf("killed-%d-%t", n, after)
			s := newHookStory(t, name, hooks()...)
			kill := &killer{n: n, after: after}
			if ended = s.live(kill); !ended {
				boundaries++
				s.live(&killer{})
			}
			for _, job := range []string{"first", "second"} {
				if made := slices.Collect(maps.Keys(s.jobs[job])); len(made) != 1 {
					t.Errorf("%s: job %s was made %d times", name, job, len(made))
				}
			}
			if got := s.record().HooksState; !slices.Equal(got.Ended, []string{"pre-install"}) {
				t.Errorf("%s: the record says %+v", name, got)
			}
			for _, gone := range []client.Object{
				&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "first"}}, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "second"}}, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "worker"}},
			} {
				key := client.ObjectKey{Namespace: s.namespace, Name: gone.GetName()}
				if err := s.client.Get(t.Context(), key, gone); client.IgnoreNotFound(err) != nil || err == nil {
					t.Errorf("%s: %s is still there: %v", name, gone.GetName(), err)
				}
			}
		}
		if ended {
			break
		}
	}
	if boundaries < 10 {
		t.Errorf("killed at %d boundaries only", boundaries)
	}
	t.Logf("killed at %d boundaries", boundaries)
}

// TestOrderOfHooks fails if the order is not Helm's: weight, even if extreme, then name, then the order of kinds.
func TestOrderOfHooks(t *testing.T) {
	record := Set{Hooks: []Hook{
		jobHook("last", math.MaxInt), jobHook("b", 1), jobHook("a", 1), jobHook("z", -7), jobHook("c", 0), jobHook("first", math.MinInt),
	}}
	var got []string
	for _, hook := range record.hooksOf("pre-install") {
		got = append(got, hook.Path)
	}
	if diff := cmp.Diff([]string{"first", "z", "c", "a", "b", "last"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestHooksDigest fails if the runs of hooks or those of tests count: every run would begin a new revision; or if
// anything else does not.
func TestHooksDigest(t *testing.T) {
	one := jobHook("a", 1)
	ran, heavier, test := one, one, one
	ran.Run, heavier.Weight, test.Events = &Run{Phase: PhaseSucceeded}, 2, []string{testEvent}
	digest := Digest([]Hook{one})
	if got := Digest([]Hook{ran, test}); got != digest {
		t.Error("how a hook ran, or one of tests, changes the digest")
	}
	if Digest([]Hook{heavier}) == digest || Digest([]Hook{test}) != "" || Digest(nil) != "" {
		t.Error("a weight does not count, or what is none does")
	}
}

// TestPauseAfterAFailedAttempt fails if a failed attempt has no pause, if the pause does not grow or has no limit, and
// if another value of annotation reconcile-at does not end it.
func TestPauseAfterAFailedAttempt(t *testing.T) {
	failed := time.Unix(1800000000, 0)
	for _, test := range []struct {
		why      string
		attempt  int
		after    time.Duration
		askedFor string
		want     bool
	}{
		{"at once", 1, 0, "before", true},
		{"at once, asked for", 1, 0, "now", false},
		{"when its time is over", 1, firstPause, "before", false},
		{"the second time takes longer", 2, firstPause, "before", true},
		{"it grows to a bound", 50, longestPause, "before", false},
	} {
		p := &execution{
			Runner: Runner{Now: failed.Add(test.after), AskedFor: test.askedFor},
			Revision: Revision{Set: &Set{HooksState: State{
				Attempt: test.attempt, Failed: "why", FailedAt: metav1.NewTime(failed), AskedFor: "before",
			}}},
		}
		if got := p.isPaused(); got != test.want {
			t.Errorf("%s: pauses %t, want %t", test.why, got, test.want)
		}
	}
}

// RS39: A hook that failed, or began, while the clock was ahead is retried, or ends, in time once the clock is correct.
// It fails if the times are not corrected, or only in memory: the wait would restart with each reconciliation.
func TestAClockThatWasAheadHoldsNoAttemptUp(t *testing.T) {
	now := time.Unix(1800000000, 0)
	future := metav1.NewTime(now.Add(1000 * time.Hour))
	ran := jobHook("a", 1)
	ran.Run = &Run{Event: "pre-install", Attempt: 1, Phase: PhaseFailed, Started: future}
	record := &Set{Action: ActionInstall, Hooks: []Hook{ran}, HooksState: State{
		Event: "pre-install", Attempt: 1, Failed: "why", FailedAt: future, Tidy: true,
	}}
	saved := 0
	runner := Runner{Timeout: time.Minute, Save: func(context.Context) error {
		saved++
		return nil
	}}
	for _, after := range []time.Duration{0, firstPause - 1} {
		runner.Now = now.Add(after)
		progress, err := runner.Run(t.Context(), Revision{Set: record, Shown: unshown{}}, "pre-install")
		if err != nil || !progress.Retry.Equal(now.Add(firstPause)) {
			t.Errorf("after %s it is tried again in %s, %v", after, progress.Retry.Sub(now), err)
		}
	}
	if began := record.Hooks[0].Run.Started; !began.Time.Equal(now) || saved != 1 {
		t.Errorf("its run began %s from now, and the record was saved %d times", began.Sub(now), saved)
	}
	over := &execution{Runner: Runner{Now: now.Add(firstPause)}, Revision: Revision{Set: record}}
	if over.isPaused() {
		t.Error("it pauses still when its time is over")
	}
}
