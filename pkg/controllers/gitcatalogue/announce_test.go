package gitcatalogue

import (
	"strings"
	"testing"

	"k8s.io/client-go/tools/events"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/fetch"
)

// TestACommitIsReportedOnce makes the passes that a cache which is behind makes: the revision in status
// is the old one still, and one of the deletions is not seen yet. Another commit is told, and going
// back to an earlier one too.
func TestACommitIsReportedOnce(t *testing.T) {
	recorder := events.NewFakeRecorder(10)
	r := &Reconciler{recorder: recorder}
	remembered := &memory{}
	pass := func(before, commit string, removed ...string) {
		made := &facts{object: &v1.AddonCatalogue{}, memory: remembered, isCurrent: true, snapshot: fetch.Snapshot{Revision: commit}}
		made.plan.remove = removed
		r.announce(made, before)
	}
	pass("old", "new", "a", "b", "c", "d", "e", "f")
	pass("old", "new", "f")
	pass("new", "new", "f")
	pass("new", "newer", "g")
	pass("newer", "new", "h")
	close(recorder.Events)
	var reported []string
	for event := range recorder.Events {
		reported = append(reported, event)
	}
	want := []string{"applied commit new: 0 add-ons added, 0 changed, 6 removed", "applied commit newer:", "applied commit new: 0 add-ons added, 0 changed, 1 removed"}
	if len(reported) != len(want) {
		t.Fatalf("got %q, want %q", reported, want)
	}
	for i := range want {
		if !strings.Contains(reported[i], want[i]) {
			t.Errorf("event %d is %q, want %q", i, reported[i], want[i])
		}
	}
}
