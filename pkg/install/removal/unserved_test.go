package removal_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/apply"
	"github.com/trellis-addons/trellis/pkg/install/removal"
	"github.com/trellis-addons/trellis/test/lab"
)

// RS27: While discovery is partial, no objects of the missing kinds are removed or dropped. It fails if an unknown kind
// counts as gone while its API server is down.
func TestPartialDiscoveryRemovesNothing(t *testing.T) {
	l := lab.New(t)
	group := l.Unique + ".example.com"
	l.Create(lab.ApiServices, "", `{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.NAME.example.com}, spec: `+
		`{group: NAME.example.com, version: v1, groupPriorityMinimum: 10, versionPriority: 10, service: {namespace: default, name: none}}}`)
	defer l.Delete(lab.ApiServices, "", "v1."+group)
	l.Eventually("the APIService is looked at", func() bool {
		conditions := l.Get(lab.ApiServices, "", "v1."+group).Object["status"]
		return strings.Contains(fmt.Sprint(conditions), "Available")
	})
	inventory := ownership.Inventory{{Key: ownership.Key{Group: group, Kind: "Widget", Namespace: "default", Name: "first"}, Version: "v1", UID: "1"}}

	left, _, err := removal.Prune(t.Context(), l.Target, inventory, removal.PruneOptions{Owner: l.Owner, Total: 10})
	if err != nil || len(left) != 1 {
		t.Errorf("prune left %v, %v; want the entry", left, err)
	}
	left, blocked, err := removal.Remove(t.Context(), l.Target, inventory, removal.RemoveOptions{Owner: l.Owner})
	if err != nil || len(left) != 1 || len(blocked) != 1 {
		t.Errorf("remove left %v, blocked %v, %v; want the entry", left, blocked, err)
	}
	if drift := l.Drift(inventory); len(drift) > 0 {
		t.Errorf("got drift %v of a kind that nobody can tell about", drift)
	}

	gone := ownership.Inventory{{Key: ownership.Key{Group: "never.example.com", Kind: "Widget", Name: "x"}, Version: "v1", UID: "1"}}
	left, _, err = removal.Remove(t.Context(), l.Target, gone, removal.RemoveOptions{Owner: l.Owner})
	if err != nil || len(left) > 0 {
		t.Errorf("remove left %v, %v; want an object gone with its kind to be done with", left, err)
	}
}

// TestRemovalWithKindsThatAreNotServed fails if a removal fails forever because of a definition that was never
// established: no server answers for its kind.
func TestRemovalWithKindsThatAreNotServed(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	objects := l.Prepare(lab.Manifests(lab.Definition("Widget", "Namespaced", ""), lab.Custom("Widget", "v1", "one")))
	inventory := l.Install(objects, nil)
	l.Drift(inventory)
	l.Unserve("widgets")
	l.Remove(inventory, removal.RemoveOptions{CRDs: lab.WhenUnused})

	l.Create(lab.Definitions, "", lab.Definition("Widget", "Namespaced", ""))
	clash := strings.NewReplacer("name: widgets.", "name: clashes.", "plural: widgets", "plural: clashes").Replace(
		lab.Definition("Widget", "Namespaced", ""))
	rollout := apply.NewRollout(l.Owner, l.Prepare(clash), nil, apply.RolloutOptions{})
	var progress apply.Progress
	l.Eventually("the names are refused", func() bool {
		progress = lab.Must(rollout.Advance(t.Context(), l.Target))(t)
		return len(progress.Waiting) == 1 && strings.Contains(progress.Waiting[0].Message, "names are not accepted")
	})
	l.Remove(progress.Inventory, removal.RemoveOptions{CRDs: lab.WhenUnused})
	if l.Get(lab.Definitions, "", "clashes."+l.Unique+".example.com") != nil {
		t.Error("the definition that was never established stays")
	}
}
