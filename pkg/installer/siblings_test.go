package installer

import (
	"context"
	"errors"
	"testing"

	"github.com/trellis-addons/trellis/pkg/target"
)

// Red when a removal is known by the namespace alone: what goes from one cluster would hold up
// another.
func TestRemovalHoldsUpItsOwnClusterAlone(t *testing.T) {
	amber := target.Ref{Namespace: "clusters", Name: "amber", UID: "a"}
	basil := target.Ref{Namespace: "clusters", Name: "basil", UID: "b"}
	i := &Installer{Reads: &fakeRecords{}}
	end := i.handovers.begin(amber)
	isHeld := func(cluster target.Ref) bool {
		p := i.Pass(&State{}, cluster.Namespace, Asked{Addon: "web"}, Seed{Others: func(context.Context) ([]Other, error) {
			return []Other{{Name: "web-2", Addon: "web", Leaving: true}}, nil
		}})
		p.Cluster = cluster
		_, err := p.siblings(t.Context())
		return errors.Is(err, errHandover)
	}
	if !isHeld(amber) || isHeld(basil) {
		t.Errorf("held up: amber %t, basil %t; want amber alone", isHeld(amber), isHeld(basil))
	}
	if end(); isHeld(amber) {
		t.Error("it is held up after the removal's pass")
	}
}
