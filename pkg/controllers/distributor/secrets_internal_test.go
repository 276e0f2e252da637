package distributor

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

// Red when an author's flood of names has every seed keep every Secret, or when an add-on that the seeds keep as it was loses its own.
func TestNamesWithoutRoomHoldNoSecrets(t *testing.T) {
	names := &v1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Name: "names", UID: "1"}}
	for i := range 1000 {
		name := v1.AddonName(fmt.Sprintf("%04d-%s", i, strings.Repeat("x", 50)))
		names.Spec.Addons = append(names.Spec.Addons, v1.Addon{Name: name, Versions: []v1.AddonVersion{{Version: "1.0.0"}}})
	}
	versions := &v1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Name: "versions", UID: "2"}}
	versions.Spec.Addons = []v1.Addon{{Name: "web"}}
	for i := range catalogue.VersionLimit + 1 {
		versions.Spec.Addons[0].Versions = append(versions.Spec.Addons[0].Versions, v1.AddonVersion{Version: fmt.Sprintf("1.%d.0", i)})
	}
	for _, test := range []struct {
		object *v1.AddonCatalogue
		holds  bool
	}{{names, false}, {versions, true}} {
		source, err := catalogue.Read(test.object)
		if err != nil {
			t.Fatal(err)
		}
		f := &facts{merged: catalogue.Merge([]*catalogue.Source{source}, catalogue.Claims{})}
		outcome := (&Reconciler{}).findSecrets(t.Context(), f)
		if outcome != nil || len(f.merged.Refused) == 0 || f.secrets.HoldAll != test.holds {
			t.Errorf("%s: %d refused, holds all: %t; %v", test.object.Name, len(f.merged.Refused), f.secrets.HoldAll, outcome)
		}
	}
}
