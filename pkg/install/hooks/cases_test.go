package hooks

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
)

// runner is a process of a story that is not killed.
func (s *hookStory) runner(record *Set) Runner {
	s.t.Helper()
	config := fleet.Shared().Cluster("seed").Config
	discoverer, err := discovery.NewDiscoveryClientForConfig(config)
	expect.NoError(s.t, err)
	remote, err := dynamic.NewForConfig(config)
	expect.NoError(s.t, err)
	return Runner{
		Target:  calls.Target{Dynamic: remote, Mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discoverer))},
		Timeout: time.Minute, Now: time.Now(),
		Save: func(context.Context) error {
			s.save(record)
			return nil
		},
	}
}

// run is one call of Run for an event.
func (s *hookStory) run(event string, change func(*Runner)) Progress {
	s.t.Helper()
	record := s.record()
	runner := s.runner(record)
	if change != nil {
		change(&runner)
	}
	progress, err := runner.Run(s.t.Context(), s.revision(record), event)
	expect.NoError(s.t, err)
	s.save(record)
	return progress
}

func (s *hookStory) job(name string) *batchv1.Job {
	s.t.Helper()
	job := &batchv1.Job{}
	expect.Get(s.t, s.client, client.ObjectKey{Namespace: s.namespace, Name: name}, job)
	return job
}

func (s *hookStory) delete(object client.Object) {
	s.t.Helper()
	expect.Delete(s.t, s.client, object, client.PropagationPolicy(metav1.DeletePropagationBackground))
}

// later begins the next attempt at once.
func later(runner *Runner) { runner.AskedFor = fmt.Sprint(runner.Now.UnixNano()) }

// A Job that ended is assessed by its end, even if it is being deleted since; the end of a Job that was deleted before
// is unknown. It fails if a deletion counts before failure or completion, if a deleted Job counts as done, and if Jobs
// are deleted without a policy.
func TestEndOfHooksThatGo(t *testing.T) {
	for name, test := range map[string]struct {
		end    []batchv1.JobConditionType
		gone   bool
		failed string
	}{
		"failed-and-going":   {end: []batchv1.JobConditionType{batchv1.JobFailureTarget, batchv1.JobFailed}, failed: "it did not work"},
		"complete-and-going": {end: []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete}},
		"going":              {failed: "it was deleted while it ran"},
		"gone":               {gone: true, failed: "its result is unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			hook := jobHook("work", 0)
			hook.Object = []byte(strings.Replace(string(hook.Object), `"spec":{`, `"spec":{"ttlSecondsAfterFinished":1,`, 1))
			s := newHookStory(t, name, hook)
			s.run("pre-install", nil)
			job := s.job("work")
			if job.Spec.TTLSecondsAfterFinished != nil {
				t.Error("the Job goes by itself")
			}
			if !test.gone {
				job.Finalizers = []string{"example.com/hold"}
				expect.Update(t, s.client, job)
				now := metav1.Now()
				job.Status.StartTime = &now
				for _, kind := range test.end {
					job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{
						Type: kind, Status: corev1.ConditionTrue, Message: "it did not work", LastTransitionTime: now,
					})
				}
				if test.failed == "" {
					job.Status.CompletionTime, job.Status.Succeeded = &now, 1
				}
				expect.UpdateStatus(t, s.client, job)
			}
			s.delete(job)
			progress := s.run("pre-install", nil)
			if progress.Done != (test.failed == "") || !strings.Contains(progress.Failed, test.failed) {
				t.Errorf("got %+v, want it failed with %q", progress, test.failed)
			}
		})
	}
}

// Two attempts never run at the same time. It fails if a Job is deleted before its Pods, or is not awaited.
func TestNextAttemptWaitsForThePodsOfTheLast(t *testing.T) {
	s := newHookStory(t, "attempts", jobHook("work", 0))
	s.run("pre-install", nil)
	first := s.job("work")
	s.run("pre-install", func(runner *Runner) { runner.Now = runner.Now.Add(time.Hour) }) // it did not end in time
	if progress := s.run("pre-install", later); progress.Waiting == "" {
		t.Errorf("the next attempt does not wait: %+v", progress)
	}
	going := s.job("work")
	if going.UID != first.UID || going.DeletionTimestamp == nil || len(going.Finalizers) == 0 {
		t.Errorf("the Job does not wait for its Pods: %v", going.Finalizers)
	}
	s.collect(going)
	s.run("pre-install", nil)
	if beginRetry := s.job("work"); beginRetry.UID == first.UID {
		t.Error("the next attempt was not made")
	}
}

// configHook is a hook that only has to exist.
func configHook(kind, spec string) Hook {
	return Hook{Path: "held", Events: []string{"pre-install"}, Object: fmt.Appendf(nil,
		`{"apiVersion":"v1","kind":%q,"metadata":{"name":"held","namespace":"NAMESPACE"}%s}`, kind, spec)}
}

const claimSpec = `,"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}`

// TestHooksTakeThePlaceOfHooksOnly fails if a hook replaces an object that is no hook of its release, or data, with
// annotation adopt or without.
func TestHooksTakeThePlaceOfHooksOnly(t *testing.T) {
	const hook = `"annotations":{"helm.sh/hook":"pre-install"}`
	for name, test := range map[string]struct {
		kind, spec, metadata string
		adopt, applied       bool
		goes                 bool
		failed               string
	}{
		"foreign":           {metadata: hook, failed: "was not created by this installation"},
		"adopted":           {metadata: hook, adopt: true, goes: true},
		"adopted-no-hook":   {metadata: `"labels":{"a":"b"}`, adopt: true, failed: "it is not a hook"},
		"adopted-installed": {metadata: hook + `,"labels":{"addons.kubermatic.k8c.io/installation":"0123456789abcdef"}`, adopt: true, failed: "another installation"},
		"adopted-released":  {metadata: `"annotations":{"helm.sh/hook":"x","meta.helm.sh/release-name":"other"}`, adopt: true, failed: `Helm release "other"`},
		"adopted-claim":     {kind: "PersistentVolumeClaim", spec: claimSpec, metadata: hook, adopt: true},
		"applied":           {applied: true, metadata: `"labels":{"a":"b"}`, failed: "an object of the add-on itself"},
		"applied-claim":     {kind: "PersistentVolumeClaim", spec: claimSpec, applied: true, metadata: `"labels":{"a":"b"}`},
	} {
		t.Run(name, func(t *testing.T) {
			if test.kind == "" {
				test.kind = "Secret"
			}
			s := newHookStory(t, "place-"+name, configHook(test.kind, test.spec))
			live := s.existing(test.kind, test.spec, test.metadata, test.applied)
			progress := s.run("pre-install", func(runner *Runner) { runner.Adopt = test.adopt })
			if !strings.Contains(progress.Failed, test.failed) || progress.Done != (test.failed == "") {
				t.Errorf("got %+v, want it failed with %q", progress, test.failed)
			}
			before := live.GetUID()
			expect.Read(t, s.client, live)
			if gone := live.GetUID() != before || live.GetDeletionTimestamp() != nil; gone != test.goes {
				t.Errorf("the object that was there went: %t, want %t", gone, test.goes)
			}
		})
	}
}

// existing creates the object that a hook finds in its place.
func (s *hookStory) existing(kind, spec, metadata string, applied bool) *unstructured.Unstructured {
	s.t.Helper()
	live, text := &unstructured.Unstructured{}, fmt.Sprintf(
		`{"apiVersion":"v1","kind":%q,"metadata":{"name":"held","namespace":%q,%s}%s}`, kind, s.namespace, metadata, spec)
	expect.NoError(s.t, json.Unmarshal([]byte(text), &live.Object))
	var err error
	if applied {
		err = s.client.Apply(s.t.Context(), client.ApplyConfigurationFromUnstructured(live), client.FieldOwner(s.owner().FieldManager()))
	} else {
		err = s.client.Create(s.t.Context(), live)
	}
	expect.NoError(s.t, err)
	return live
}

// Objects created as hooks are ours to replace. It fails if the next event does not recreate them.
func TestHooksReplaceTheirOwn(t *testing.T) {
	hook := configHook("Secret", "")
	hook.Events = append(hook.Events, "post-install")
	s := newHookStory(t, "own", hook)
	s.run("pre-install", nil)
	live := &corev1.Secret{}
	key := client.ObjectKey{Namespace: s.namespace, Name: "held"}
	if err := s.client.Get(t.Context(), key, live); err != nil || live.Annotations[kubermaticv1.AnnotationHookRun] == "" {
		t.Fatalf("%v: %v", live.Annotations, err)
	}
	before := live.UID
	if progress := s.run("post-install", nil); !progress.Done {
		t.Errorf("got %+v", progress)
	}
	if err := s.client.Get(t.Context(), key, live); err != nil || live.UID == before {
		t.Errorf("the hook was not made anew: %v", err)
	}
}

// Hooks that have nowhere to run do not block a removal; they block everything else. It fails if they do, or are not
// reported.
func TestHooksWithoutAPlace(t *testing.T) {
	widget := Hook{Path: "widget", Object: []byte(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w","namespace":"NAMESPACE"}}`)}
	absent := jobHook("work", 0)
	absent.Object = []byte(strings.ReplaceAll(string(absent.Object), "NAMESPACE", "absent"))
	for name, hook := range map[string]Hook{"not-served": widget, "no-namespace": absent} {
		t.Run(name, func(t *testing.T) {
			hook.Events = []string{"pre-install", "pre-delete"}
			s := newHookStory(t, name, hook)
			if progress := s.run("pre-install", nil); progress.Failed == "" || progress.Done {
				t.Errorf("an installation: %+v", progress)
			}
			var skipped []string
			progress := s.run("pre-delete", func(runner *Runner) {
				runner.Skipped = func(message string) { skipped = append(skipped, message) }
			})
			if !progress.Done || len(skipped) != 1 || !strings.Contains(skipped[0], "was not run") {
				t.Errorf("a removal: %+v, told %q", progress, skipped)
			}
		})
	}
}

// Hooks that run when a release is removed end first. It fails if a running hook, recorded or not, or one that did not
// end in time, continues; if the removal continues before it is gone; and if a Job that ended is deleted too.
func TestStopEndsWhatRuns(t *testing.T) {
	for name, test := range map[string]struct {
		forget, overdue, ended bool
	}{
		"on-record": {}, "not-on-record": {forget: true}, "overdue": {overdue: true}, "ended": {ended: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newHookStory(t, "stop-"+name, jobHook("work", 0))
			s.run("pre-install", nil)
			record := s.record()
			switch {
			case test.forget:
				record.Hooks[0].Run = nil
				s.save(record)
			case test.overdue:
				s.run("pre-install", func(runner *Runner) { runner.Now = runner.Now.Add(time.Hour) })
			case test.ended:
				s.endJobs()
			}
			record = s.record()
			stop := func() string {
				waiting, err := s.runner(record).Stop(t.Context(), s.revision(record), false)
				expect.NoError(t, err)
				return waiting
			}
			if waiting := stop(); (waiting == "") != test.ended {
				t.Errorf("it waits: %q", waiting)
			}
			job := s.job("work")
			if (job.DeletionTimestamp == nil) != test.ended {
				t.Errorf("the Job goes: %v", job.DeletionTimestamp)
			}
			if test.ended {
				return
			}
			s.collect(job)
			if waiting := stop(); waiting != "" {
				t.Errorf("it waits for what is gone: %q", waiting)
			}
		})
	}
}

// TestObjectsThatBecameHooks fails if an object of the add-on that became a hook is pruned, or if one that a hook has
// replaced, or has not checked yet, is not.
func TestObjectsThatBecameHooks(t *testing.T) {
	hook := func(name string, run *Run) Hook {
		made := configHook("ConfigMap", "")
		made.Object, made.Run = []byte(strings.Replace(string(made.Object), "held", name, 1)), run
		return made
	}
	done := func(uid types.UID) *Run { return &Run{Phase: PhaseSucceeded, UID: uid} }
	record := Set{Hooks: []Hook{
		hook("left", done("")), hook("same", done("1")), hook("replaced", done("2")), hook("later", nil), hook("failed", &Run{Phase: PhaseFailed}),
	}}
	var inventory ownership.Inventory
	for _, name := range []string{"left", "same", "replaced", "later", "failed", "other"} {
		inventory = append(inventory, ownership.Entry{Key: ownership.Key{Kind: "ConfigMap", Namespace: "NAMESPACE", Name: name}, UID: "1"})
	}
	var got []string
	for _, entry := range record.WithoutHooked(inventory) {
		got = append(got, entry.Name)
	}
	if diff := cmp.Diff([]string{"replaced", "later", "failed", "other"}, got); diff != "" {
		t.Errorf("what is pruned (-want +got):\n%s", diff)
	}
}
