package cluster

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	capiv1 "github.com/trellis-addons/trellis/apis/clusterapi/v1"
	"github.com/trellis-addons/trellis/pkg/target"
	"github.com/trellis-addons/trellis/pkg/templatedata"
)

// A tenant has templates name ever other objects, which never come, and installations come and go. Red when what was named before is kept
// (Seen or Unread without forget), or goes for others that name the same.
func TestWhatReadersNamedBeforeIsForgotten(t *testing.T) {
	noted := newObjects(nil)
	finders := &Finders{capi: &CAPIFinder{objects: noted}}
	changing, staying := types.NamespacedName{Namespace: "team", Name: "changing"}, types.NamespacedName{Namespace: "team", Name: "staying"}
	told := map[string]int{}
	reader := func(name types.NamespacedName) Reader {
		return Reader{Name: name, Changed: func() { told[name.Name]++ }}
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
	tell := func(name string) {
		object := &unstructured.Unstructured{}
		object.SetNamespace("team")
		object.SetName(name)
		noted.tell(kind, object)
		noted.tell(kind, object) // a reader is told once
	}
	tell("0")
	tell("99")
	if told["staying"] != 1 || told["changing"] != 1 || len(noted.readers) != 0 || len(noted.reads) != 0 {
		t.Errorf("told: %v; noted still: %v", told, noted.reads)
	}
	noted.note(named("gone"), reader(changing))
	finders.Unread(changing)
	tell("gone")
	if told["changing"] != 1 || len(noted.reads) != 0 {
		t.Errorf("one that reads no more is told: %v; noted still: %v", told, noted.reads)
	}
}
