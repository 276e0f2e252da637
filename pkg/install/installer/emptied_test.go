package installer

import (
	"context"
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/removal"
	"github.com/trellis-addons/trellis/pkg/install/revision"
	"github.com/trellis-addons/trellis/test/fleet"
)

// TestEmptiedLeavesOutWhatSiblingsHave fails if the required hash includes objects that another installation has too,
// which the prune leaves out: it would require another approval.
func TestEmptiedLeavesOutWhatSiblingsHave(t *testing.T) {
	role := ownership.Entry{Key: ownership.Key{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "web"}, UID: "2"}
	own := inventoryOf("web")
	theirs := &revision.Record{Addon: "web", Version: "1.0.0", Inventory: ownership.Inventory{role}, Objects: []json.RawMessage{
		json.RawMessage(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"web"}}`)}}
	others := func(context.Context) ([]Other, error) { return []Other{{Name: "web-2", Addon: "web"}}, nil }
	record := &revision.Record{Addon: "web", Version: "1.0.0", State: revision.StateApplied, Inventory: append(own, role)}
	asked := Asked{Addon: "web"}
	for range 2 {
		p := (&Installer{Reads: &fakeRecords{record: theirs}}).NewRun(&State{Loaded: true, Record: record}, "cluster-a", asked, Seed{Others: others})
		objects, approval, stop := p.Emptied(t.Context(), "")
		if stop != nil {
			t.Fatalf("it stops: %+v", stop)
		}
		if asked.PruneApproved != "" {
			if len(objects) > 0 {
				t.Errorf("%d objects are asked for again", len(objects))
			}
			continue
		}
		if len(objects) != len(own) || approval != removal.Approval(own) {
			t.Errorf("approval is asked for %+v, want %+v", objects, own)
		}
		asked.PruneApproved = approval
	}
}

// TestEmptiedAsksForObjectsAndNotForNames fails if, after an unfinished rollout, the required hash is one of names,
// which is valid for other objects of these names as well; and if it includes objects that the rollout did not write.
func TestEmptiedAsksForObjectsAndNotForNames(t *testing.T) {
	config := fleet.Shared().Cluster("both").Config
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	owner := ownership.Owner{ClusterUID: "uid", Installation: "emptied"}
	made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "emptied", Labels: map[string]string{v1.LabelInstallation: owner.ID()},
	}}
	if err := c.Create(t.Context(), made, client.FieldOwner(owner.FieldManager())); err != nil {
		t.Fatal(err)
	}
	read, err := metadata.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	finder, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	entry := ownership.Entry{Key: ownership.Key{Kind: "ConfigMap", Namespace: "default", Name: "emptied"}, Version: "v1"}
	missing := entry
	missing.Name = "missing"
	record := &revision.Record{State: revision.StateIntent, Inventory: ownership.Inventory{entry, missing}}
	p := (&Installer{}).NewRun(&State{Loaded: true, Record: record}, "cluster-a", Asked{}, Seed{})
	p.Owner = owner
	p.Connection = &cluster.Connection{Metadata: read, Mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(finder))}
	objects, approval, stop := p.Emptied(t.Context(), "")
	if stop != nil {
		t.Fatalf("it stops: %+v", stop)
	}
	entry.UID = made.UID
	if want := (ownership.Inventory{entry}); len(objects) != 1 || objects[0].UID != made.UID || approval != removal.Approval(want) {
		t.Errorf("approval is asked for %+v, want %+v", objects, want)
	}
}
