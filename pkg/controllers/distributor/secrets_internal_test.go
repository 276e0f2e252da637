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
	large := &v1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Name: "large", UID: "2"}}
	large.Spec.Addons = []v1.Addon{{Name: "web"}}
	for i := range 17 {
		version := v1.AddonVersion{Version: fmt.Sprintf("1.%d.0", i), ValuesTemplate: strings.Repeat("x", 64<<10)}
		large.Spec.Addons[0].Versions = append(large.Spec.Addons[0].Versions, version)
	}
	for _, test := range []struct {
		object *v1.AddonCatalogue
		holds  bool
	}{{names, false}, {large, true}} {
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
