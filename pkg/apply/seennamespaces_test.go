package apply_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/apply"
)

// Red when each rollout asks for its namespace, when it is never asked for again, or when one that was missing is remembered.
func TestRolloutsShareALookAtTheirNamespace(t *testing.T) {
	l := newLab(t)
	now := time.Now()
	seen := apply.NewNamespaces(func() time.Time { return now })
	roll := func(installation string, want ...string) (progress apply.Progress) {
		t.Helper()
		l.owner.Installation = installation
		rollout := apply.NewRollout(l.owner, l.prepare(settings), nil, apply.RolloutOptions{Namespaces: seen})
		asked := l.calls.during("GET /api/v1/namespaces/"+l.name, func() {
			progress = must(rollout.Advance(t.Context(), l.target))(t)
		})
		if diff := cmp.Diff(want, asked); diff != "" {
			t.Errorf("%s asked (-want +got):\n%s", installation, diff)
		}
		return progress
	}
	look := "GET /api/v1/namespaces/" + l.name
	missing := roll("first", look)
	if diff := cmp.Diff([]string{"ConfigMap settings: " + kubermaticv1.ReasonNamespaceMissing}, reasons(missing.Waiting)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	l.namespace()
	roll("first", look)
	l.delete(configMaps, l.name, "settings")
	roll("second")
	l.delete(configMaps, l.name, "settings")
	now = now.Add(time.Minute)
	roll("third", look)
}
