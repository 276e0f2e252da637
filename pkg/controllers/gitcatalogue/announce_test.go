package gitcatalogue

import (
	"strings"
	"testing"

	"k8s.io/client-go/tools/events"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/fetch"
)

// TestACommitIsToldOnce makes the passes that a cache which is behind makes: the revision in status
// is the old one still, and one of the deletions is not seen yet. Another commit is told, and going
// back to an earlier one too.
func TestACommitIsToldOnce(t *testing.T) {
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
	var told []string
	for event := range recorder.Events {
		told = append(told, event)
	}
	want := []string{"took commit new: 0 add-ons added, 0 changed, 6 taken out", "took commit newer:", "took commit new: 0 add-ons added, 0 changed, 1 taken out"}
	if len(told) != len(want) {
		t.Fatalf("got %q, want %q", told, want)
	}
	for i := range want {
		if !strings.Contains(told[i], want[i]) {
			t.Errorf("event %d is %q, want %q", i, told[i], want[i])
		}
	}
}
