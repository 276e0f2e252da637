package wiring_test

import (
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/cmd/wiring"
)

// TestWhatAManagersCacheHolds turns red when a manager's cache holds who manages fields, of any kind, or twice what installations have alike.
func TestWhatAManagersCacheHolds(t *testing.T) {
	options := wiring.Cache(wiring.HeldOnSeeds("addon-catalogue"), wiring.NewInstallations())
	for object, held := range options.ByObject {
		if held.Transform != nil {
			t.Errorf("%T is held by a rule of its own, which takes the place of that for all", object)
		}
	}
	held := func(one client.Object) client.Object {
		t.Helper()
		one.SetLabels(map[string]string{v1.LabelSet: "tools"})
		one.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "somebody"}})
		found, err := options.DefaultTransform(one)
		if err != nil {
			t.Fatal(err)
		}
		object := found.(client.Object)
		if len(object.GetManagedFields()) > 0 {
			t.Errorf("who manages fields of a %T is held", one)
		}
		return object
	}
	held(&kkpv1.Cluster{})
	one, other := held(&v1.AddonInstallation{}), held(&v1.AddonInstallation{})
	if reflect.ValueOf(one.GetLabels()).Pointer() != reflect.ValueOf(other.GetLabels()).Pointer() {
		t.Error("labels of two installations are held twice")
	}
}
