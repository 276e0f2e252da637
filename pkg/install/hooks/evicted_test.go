package hooks

import (
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
)

// lowOnMemory is a kubelet's message about a Pod that it evicts.
const lowOnMemory = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 82Mi. "

// podHook is a Pod that runs before an installation.
func podHook(name string) Hook {
	return Hook{Path: name, Events: []string{"pre-install"}, Object: fmt.Appendf(nil,
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"namespace":"NAMESPACE"},"spec":`+
			`{"restartPolicy":"Never","serviceAccountName":"default","containers":[{"name":"a","image":"a"}]}}`, name)}
}

// jobStatus writes a Job's status like its controller.
func (s *hookStory) jobStatus(name string, change func(*batchv1.JobStatus)) {
	s.t.Helper()
	job, now := s.job(name), metav1.Now()
	if job.Status.StartTime == nil { // it can't be changed
		job.Status.StartTime = &now
	}
	change(&job.Status)
	expect.UpdateStatus(s.t, s.client, job)
}

func ofJob(kinds ...batchv1.JobConditionType) (conditions []batchv1.JobCondition) {
	for _, kind := range kinds {
		conditions = append(conditions, batchv1.JobCondition{
			Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now(),
			Reason: batchv1.JobReasonBackoffLimitExceeded, Message: "Job has reached the specified backoff limit",
		})
	}
	return conditions
}

func (s *hookStory) pod(name string) *corev1.Pod {
	s.t.Helper()
	pod := &corev1.Pod{}
	expect.Get(s.t, s.client, client.ObjectKey{Namespace: s.namespace, Name: name}, pod)
	return pod
}

func (s *hookStory) podStatus(name string, status corev1.PodStatus) {
	s.t.Helper()
	pod := s.pod(name)
	pod.Status = status
	expect.UpdateStatus(s.t, s.client, pod)
}

// expectRetry checks that a hook failed with this message, is not touched during its pause, and is recreated after it.
func (s *hookStory) expectRetry(words string, before types.UID, now func() types.UID) {
	s.t.Helper()
	failed := s.run("pre-install", nil)
	if failed.Attempt != 1 || !strings.Contains(failed.Failed, words) || failed.Retry.IsZero() {
		s.t.Fatalf("got %+v, want it failed with %q", failed, words)
	}
	if early := s.run("pre-install", nil); early.Failed != failed.Failed || now() != before {
		s.t.Errorf("before its pause is over: %+v", early)
	}
	for range 3 { // the existing object is deleted first
		s.run("pre-install", func(runner *Runner) { runner.Now = failed.Retry })
		if job := (&batchv1.Job{}); s.client.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "work"}, job) == nil && job.DeletionTimestamp != nil {
			s.collect(job)
		}
	}
	if now() == before {
		s.t.Error("it is not made anew")
	}
}

// AG23: An evicted Pod that is a hook reports the eviction and is run again by Trellis, as is a Job that gave up; a Job
// that retries by itself is awaited.
func TestHooksWhosePodsWereEvictedRunAgain(t *testing.T) {
	evicted := corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: lowOnMemory}
	t.Run("a Pod", func(t *testing.T) {
		s := newHookStory(t, "evicted-pod", podHook("work"))
		s.run("pre-install", nil)
		first := s.pod("work").UID
		s.podStatus("work", evicted)
		s.expectRetry(`Pod evicted-pod/work: the Pod failed: Evicted: The node was low on resource: memory.`, first, func() types.UID { return s.pod("work").UID })
		s.podStatus("work", corev1.PodStatus{Phase: corev1.PodSucceeded})
		if done := s.run("pre-install", nil); !done.Done {
			t.Errorf("the second run was through: %+v", done)
		}
	})
	t.Run("a Job that tries once", func(t *testing.T) {
		s := newHookStory(t, "evicted-job", jobHook("work", 0))
		s.run("pre-install", nil)
		first := s.job("work").UID
		s.jobStatus("work", func(status *batchv1.JobStatus) {
			status.Failed, status.Conditions = 1, ofJob(batchv1.JobFailureTarget, batchv1.JobFailed)
		})
		s.expectRetry(`Job.batch evicted-job/work: BackoffLimitExceeded: Job has reached the specified backoff limit`, first,
			func() types.UID { return s.job("work").UID })
		s.endJobs()
		if done := s.run("pre-install", nil); !done.Done {
			t.Errorf("the second run was through: %+v", done)
		}
	})
	t.Run("a Job that tries again by itself", func(t *testing.T) {
		s := newHookStory(t, "evicted-again", jobHook("work", 0))
		s.run("pre-install", nil)
		first := s.job("work").UID
		for _, active := range []int32{0, 1} { // its controller waits, too, before the next Pod
			s.jobStatus("work", func(status *batchv1.JobStatus) { status.Failed, status.Active = 1, active })
			waiting := s.run("pre-install", func(runner *Runner) { runner.Now = runner.Now.Add(podGrace + time.Second) })
			if !strings.Contains(waiting.Waiting, "of event pre-install: it runs; Pods of it that failed: 1") || waiting.Failed != "" {
				t.Errorf("got %+v", waiting)
			}
		}
		s.jobStatus("work", func(status *batchv1.JobStatus) {
			now := metav1.Now()
			status.Active, status.Succeeded, status.CompletionTime = 0, 1, &now
			status.Conditions = ofJob(batchv1.JobSuccessCriteriaMet, batchv1.JobComplete)
		})
		if done := s.run("pre-install", nil); !done.Done || s.job("work").UID != first {
			t.Errorf("its second Pod was through: %+v", done)
		}
	})
}

// AG23: A Job that gets no Pod reports that with the reason, once it should have one, and when it is given up: then
// with the cluster's own reason, if any.
func TestAJobThatGetsNoPodIsReported(t *testing.T) {
	s := newHookStory(t, "podless", jobHook("work", 0))
	s.run("pre-install", nil)
	if soon := s.run("pre-install", nil); !strings.HasSuffix(soon.Waiting, "of event pre-install: it runs") {
		t.Errorf("at first: %+v", soon)
	}
	expect.Create(t, s.client, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: s.namespace, Name: "work.1"},
		InvolvedObject: corev1.ObjectReference{Kind: "Job", Namespace: s.namespace, Name: "work", UID: s.job("work").UID},
		Reason:         "FailedCreate", LastTimestamp: metav1.Now(), Message: `Error creating: pods "work-" is forbidden: exceeded quota: small, requested: pods=1`,
	})
	const why = `it has no Pod: FailedCreate: exceeded quota: small`
	after := func(passed time.Duration) Progress {
		return s.run("pre-install", func(runner *Runner) { runner.Now = runner.Now.Add(passed) })
	}
	if later := after(podGrace + time.Second); !strings.HasSuffix(later.Waiting, "of event pre-install: "+why) {
		t.Errorf("later: %+v", later)
	}
	if end := after(2 * time.Minute); !strings.HasSuffix(end.Failed, "it did not end within 1m0s ("+why+")") || end.Cause != v1.ReasonQuotaExceeded {
		t.Errorf("in the end: %+v", end)
	}
}
