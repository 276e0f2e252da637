package apply_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/install/apply"
	"github.com/trellis-addons/trellis/test/lab"
)

// TestRolloutsShareALookAtTheirNamespace fails if each rollout reads its namespace, if it is never read again, or if a
// missing one is cached.
func TestRolloutsShareALookAtTheirNamespace(t *testing.T) {
	l := lab.New(t)
	now := time.Now()
	seen := apply.NewNamespaces(func() time.Time { return now })
	roll := func(installation string, want ...string) (progress apply.Progress) {
		t.Helper()
		l.Owner.Installation = installation
		rollout := apply.NewRollout(l.Owner, l.Prepare(lab.Settings), nil, apply.RolloutOptions{Namespaces: seen})
		asked := l.Calls.During("GET /api/v1/namespaces/"+l.Unique, func() {
			progress = lab.Must(rollout.Advance(t.Context(), l.Target))(t)
		})
		if diff := cmp.Diff(want, asked); diff != "" {
			t.Errorf("%s asked (-want +got):\n%s", installation, diff)
		}
		return progress
	}
	read := "GET /api/v1/namespaces/" + l.Unique
	missing := roll("first", read)
	if diff := cmp.Diff([]string{"ConfigMap settings: " + kubermaticv1.ReasonNamespaceMissing}, lab.Reasons(missing.Waiting)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	l.Namespace()
	roll("first", read)
	l.Delete(lab.ConfigMaps, l.Unique, "settings")
	roll("second")
	l.Delete(lab.ConfigMaps, l.Unique, "settings")
	now = now.Add(time.Minute)
	roll("third", read)
}
