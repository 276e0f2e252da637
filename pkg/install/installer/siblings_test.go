package installer

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/install/revision"
)

// TestRemovalHoldsUpItsOwnClusterAlone fails if a removal is identified by the namespace alone: a removal in one
// cluster would delay another cluster.
func TestRemovalHoldsUpItsOwnClusterAlone(t *testing.T) {
	amber := target.Ref{Namespace: "clusters", Name: "amber", UID: "a"}
	basil := target.Ref{Namespace: "clusters", Name: "basil", UID: "b"}
	i := &Installer{Reads: &fakeRecords{}}
	end := i.handovers.begin(amber)
	isHeld := func(cluster target.Ref) bool {
		p := i.NewRun(&State{}, cluster.Namespace, Asked{Addon: "web"}, Seed{Others: func(context.Context) ([]Other, error) {
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

// TestWhatIsLeftToOneThatGoesTooIsRemoved fails if an object outlives two installations that are removed at the same
// time: if the one that has to delete it just left it to the other, which was not being removed then, and deletes its
// records (Forget without a second check); and if the other's removal ends without it meanwhile.
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
	of := func(name, other string) *Run {
		record, err := i.Reads.Load(t.Context(), "", ownership.Owner{Installation: name})
		if err != nil {
			t.Fatal(err)
		}
		p := i.NewRun(&State{Loaded: true, Record: record}, "cluster-a", Asked{Addon: "web"}, Seed{Others: func(context.Context) ([]Other, error) {
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

// forgets counts deletions of records.
type forgets struct {
	RecordWriter
	count *int
}

// Forget counts a call.
func (f forgets) Forget(context.Context, string, ownership.Owner) error {
	*f.count++
	return nil
}

// TestOnlyRecordsOfWhatCanBeSharedNameSiblings fails if a record of namespaced objects alone names the add-on's other
// installations: with hundreds of them most of the record is their IDs, which are looked up, packed, written and kept
// in memory for each. It also fails if one with a cluster-scoped object does not.
func TestOnlyRecordsOfWhatCanBeSharedNameSiblings(t *testing.T) {
	manifests := map[string]string{
		"in a namespace":       `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web","namespace":"shop"}}`,
		"with its namespace":   `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}}`,
		"of the whole cluster": `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"web"}}`,
	}
	for name, want := range map[string]int{"in a namespace": 0, "with its namespace": 0, "of the whole cluster": 2} {
		t.Run(name, func(t *testing.T) {
			objects, err := revision.DecodeObjects([]json.RawMessage{json.RawMessage(manifests[name])})
			if err != nil {
				t.Fatal(err)
			}
			kept, lists := &intents{}, 0
			p := (&Installer{Reads: kept, Writes: kept}).NewRun(&State{Loaded: true}, "cluster-a", Asked{Addon: "web"}, Seed{
				Others: func(context.Context) ([]Other, error) {
					lists++
					return []Other{{Name: "web-2", Addon: "web"}, {Name: "web-3", Addon: "web"}, {Name: "mail", Addon: "mail"}}, nil
				},
			})
			p.Owner, p.Objects = ownership.Owner{ClusterUID: "a", Installation: "web-1"}, objects
			if stop := p.Begin(t.Context(), revision.Record{Addon: "web", Version: "1.0.0"}, false); stop != nil {
				t.Fatal(stop)
			}
			if got := len(kept.record.Siblings); got != want || lists != min(want, 1) {
				t.Errorf("it names %d siblings by %d lists of installations, want %d by %d", got, lists, want, min(want, 1))
			}
		})
	}
}

// intents keeps the last intent.
type intents struct{ fakeRecords }

// SaveIntent keeps the record.
func (s *intents) SaveIntent(_ context.Context, _ string, record *revision.Record) error {
	s.record = record
	return nil
}
