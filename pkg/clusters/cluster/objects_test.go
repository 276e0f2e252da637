package cluster

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	capiv1 "github.com/trellis-addons/trellis/apis/clusterapi/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/values/templatedata"
)

// TestWhatReadersNamedBeforeIsForgotten: A tenant's templates name ever more objects that never exist, and
// installations are created and deleted. The test fails when earlier names are kept (Seen or Unread without forget),
// or are removed for other readers that name the same.
func TestWhatReadersNamedBeforeIsForgotten(t *testing.T) {
	noted := newObjects(nil)
	finders := &Finders{capi: &CAPIFinder{objects: noted}}
	changing, staying := types.NamespacedName{Namespace: "team", Name: "changing"}, types.NamespacedName{Namespace: "team", Name: "staying"}
	reported := map[string]int{}
	reader := func(name types.NamespacedName) Reader {
		return Reader{Name: name, Changed: func() { reported[name.Name]++ }}
	}
	kind := capiv1.V1Beta2.WithKind(capiv1.Kind)
	named := func(name string) objectKey {
		return objectKey{kind, types.NamespacedName{Namespace: "team", Name: name}}
	}
	noted.note(named("0"), reader(staying))
	for i := range 100 {
		if _, _, err := finders.Seen(t.Context(), target.Description{}, templatedata.CAPINames{}, reader(changing)); err != nil {
			t.Fatal(err)
		}
		noted.note(named(fmt.Sprint(i)), reader(changing))
	}
	if len(noted.readers) != 2 || len(noted.reads) != 2 || len(noted.reads[changing]) != 1 {
		t.Errorf("%d objects are noted, by %v", len(noted.readers), noted.reads)
	}
	report := func(name string) {
		noted.notify(named(name))
		noted.notify(named(name)) // a reader is notified once
	}
	report("0")
	report("99")
	if reported["staying"] != 1 || reported["changing"] != 1 || len(noted.readers) != 0 || len(noted.reads) != 0 {
		t.Errorf("told: %v; noted still: %v", reported, noted.reads)
	}
	noted.note(named("gone"), reader(changing))
	finders.Unread(changing)
	report("gone")
	if reported["changing"] != 1 || len(noted.reads) != 0 {
		t.Errorf("one that reads no more is told: %v; noted still: %v", reported, noted.reads)
	}
}
