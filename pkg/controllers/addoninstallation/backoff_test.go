package addoninstallation

import (
	"testing"
	"time"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/apply"
	"github.com/trellis-addons/trellis/pkg/calls"
	"github.com/trellis-addons/trellis/pkg/loop"
)

// RS05: What a user cluster refuses is tried at longer and longer intervals, at last every five
// minutes. Red when a refused object is tried every minute for ever.
func TestRefusedObjectIsTriedEveryFiveMinutes(t *testing.T) {
	refused := apply.Progress{Refused: []calls.Note{{Reason: kubermaticv1.ReasonObjectInvalid, Message: "field spec.ports is required"}}}
	var last time.Duration
	for looks := range 40 {
		wait := loop.ComeBack(unfinished(refused, looks+1))
		if wait < last || wait > 5*time.Minute {
			t.Fatalf("look %d waits %s after %s", looks+1, wait, last)
		}
		last = wait
	}
	if last != 5*time.Minute {
		t.Errorf("after 40 looks it waits %s", last)
	}
}

// A kind that others bring may stay away for good. Red when whatever waits is looked at every 15 seconds for ever, each time with all
// lists of a look for drift.
func TestKindsThatStayAwayAreLookedForRarely(t *testing.T) {
	for reason, want := range map[string]time.Duration{
		kubermaticv1.ReasonKindNotServed: slowestRetry, kubermaticv1.ReasonWaitingForStage: slowestLook,
		kubermaticv1.ReasonNamespaceTerminating: slowestLook, kubermaticv1.ReasonObjectInvalid: refusedRecheck,
	} {
		notes := []calls.Note{{Reason: reason}}
		if got := repairWait(notes, maxLooks); got != want {
			t.Errorf("%s: after many looks it waits %s, want %s", reason, got, want)
		}
		if first := repairWait(notes, 0); want != refusedRecheck && first > time.Second {
			t.Errorf("%s: at first it waits %s", reason, first)
		}
	}
}

// RS05: A call that failed is tried at longer and longer intervals, at last every five minutes. Red
// when the longest wait is another one, when failures are not counted on, and when a success does
// not end the count.
func TestFailedCallIsTriedEveryFiveMinutes(t *testing.T) {
	f := &facts{installation: &kubermaticv1.AddonInstallation{}, memory: &memory{}}
	var last time.Duration
	for i := range 40 {
		retry, failed := f.backOff(loop.RetryAt{Message: "etcd is full"}).(loop.RetryAt)
		if !failed || retry.After < last || retry.After > 5*time.Minute {
			t.Fatalf("failure %d waits %s after %s", i+1, retry.After, last)
		}
		last = retry.After
	}
	if last != 5*time.Minute || f.installation.Status.Failures != 40 {
		t.Errorf("after %d failures it waits %s", f.installation.Status.Failures, last)
	}
	f.backOff(loop.Done{})
	if retry := f.backOff(loop.RetryAt{}).(loop.RetryAt); retry.After != time.Second || f.installation.Status.Failures != 1 {
		t.Errorf("the first failure after a success waits %s as number %d", retry.After, f.installation.Status.Failures)
	}
}
