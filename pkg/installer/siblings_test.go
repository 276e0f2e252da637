package installer

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/trellis-addons/trellis/pkg/ownership"
	"github.com/trellis-addons/trellis/pkg/revision"
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

// Red when an object outlives two that go at the same time: when the one that was to take it along left it a moment ago to the other,
// which was not removed then, and forgets it (Forget without a second look); and when the other goes without it meanwhile.
func TestWhatIsLeftToOneThatGoesTooIsRemoved(t *testing.T) {
	role := ownership.Entry{Key: ownership.Key{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "web"}, UID: "1"}
	planned := role
	planned.UID = ""
	idOf := func(name string) string { return ownership.Owner{ClusterUID: "a", Installation: name}.ID() }
	manifest := json.RawMessage(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"web"}}`)
	i, forgotten := &Installer{}, 0
	i.Reads = recordsByName{records: map[string]*revision.Record{
		"last":  {Addon: "web", Version: "1.0.0", Inventory: ownership.Inventory{role}, Objects: []json.RawMessage{manifest}},
		"first": {Addon: "web", Version: "1.0.0", Inventory: ownership.Inventory{planned}, Objects: []json.RawMessage{manifest}, Siblings: []string{idOf("last")}},
	}}
	i.Writes = forgets{count: &forgotten}
	isGoing := map[string]bool{}
	of := func(name, other string) *Pass {
		record, err := i.Reads.Load(t.Context(), "", ownership.Owner{Installation: name})
		if err != nil {
			t.Fatal(err)
		}
		p := i.Pass(&State{Loaded: true, Record: record}, "cluster-a", Asked{Addon: "web"}, Seed{Others: func(context.Context) ([]Other, error) {
			return []Other{{Name: other, Addon: "web", Leaving: isGoing[other]}}, nil
		}})
		p.Owner, p.Cluster = ownership.Owner{ClusterUID: "a", Installation: name}, target.Ref{Namespace: "clusters", Name: "amber"}
		return &p
	}
	last, first := of("last", "first"), of("first", "last")
	isGoing["last"] = true
	if objects, _, err := last.removable(t.Context()); err != nil || len(objects) != 0 || len(last.leaves) != 1 {
		t.Fatalf("what the first plans goes: %+v, %v", objects, err)
	}
	isGoing["first"] = true
	if stop := last.Forget(t.Context()); stop == nil || forgotten > 0 {
		t.Errorf("it is forgotten although nobody has it: %+v", stop)
	}
	if _, waits, err := first.removable(t.Context()); err != nil || waits != "" {
		t.Errorf("it waits for %q, %v", waits, err)
	}
	end := i.handovers.begin(last.forgetting("last"))
	if _, waits, err := first.removable(t.Context()); err != nil || waits != "last" {
		t.Errorf("it does not wait for one that may have left it the object: %q, %v", waits, err)
	}
	end()
	isGoing["first"] = false
	if stop := last.Forget(t.Context()); stop != nil || forgotten != 1 {
		t.Errorf("what stays for the first is not forgotten: %+v", stop)
	}
}

// forgets counts what is forgotten.
type forgets struct {
	RecordWriter
	count *int
}

// Forget counts.
func (f forgets) Forget(context.Context, string, ownership.Owner) error {
	*f.count++
	return nil
}
