package clusterapi

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// What is stored may not have come yet: a history is complete once each object came as it is, or later, whatever came of others. Red where
// it is enough that something newer came.
func TestAHistoryIsCompleteOnceAllWatchesBroughtWhatThereIs(t *testing.T) {
	at := func(uid types.UID, order uint64) *v1.AddonInstallation {
		one := &v1.AddonInstallation{}
		one.UID, one.ResourceVersion = uid, strconv.FormatUint(order, 10)
		return one
	}
	h := &History{}
	for _, test := range []struct {
		comes types.UID
		order uint64
		want  bool
	}{{"gate", 3, false}, {"hook", 6, false}, {"gate", 5, true}, {"gate", 7, true}} {
		h.stored = append(h.stored, stored{order: test.order, object: at(test.comes, test.order)})
		if got, err := h.has([]client.Object{at("gate", 5), at("hook", 6)}); err != nil || got != test.want {
			t.Errorf("with %s at %d it is complete: %t, %v", test.comes, test.order, got, err)
		}
	}
}

// Several watches tell what came in any order, the history in that of the API server. Red where it tells as it heard, and where it tells of
// another Cluster of the namespace.
func TestAHistoryIsInTheOrderOfTheStore(t *testing.T) {
	h := &History{cluster: types.NamespacedName{Namespace: "team", Name: "elm"}}
	put := func(order uint64, kind schema.GroupVersionKind, of string, content map[string]any) {
		one := object(kind, "team", of+"-x")
		if kind == ClusterKind {
			one.SetName(of)
		}
		one.SetLabels(map[string]string{clusterNameLabel: of})
		one.Object["spec"] = content
		h.stored = append(h.stored, stored{order: order, object: one})
	}
	template := func(version string) map[string]any {
		return map[string]any{"template": map[string]any{"spec": map[string]any{"version": version}}}
	}
	cni := &v1.AddonInstallation{}
	cni.Name, cni.Spec.ClusterName, cni.Status.Version = "elm.cni", "elm", "1.1.0"
	put(5, MachineDeploymentKind, "elm", template(after))
	put(1, MachineDeploymentKind, "elm", template(before))
	put(6, MachineDeploymentKind, "fir", template(oldest))
	put(4, ControlPlaneKind, "elm", map[string]any{"version": after})
	put(2, ControlPlaneKind, "elm", map[string]any{"version": before})
	h.stored = append(h.stored, stored{order: 3, object: cni}, stored{order: 7, isGone: true, object: h.stored[0].object.(*unstructured.Unstructured)})
	var reported []string
	err := h.Replay(func(now Progress) error {
		reported = append(reported, fmt.Sprintf("%s, workers %v, cni %s", now.ControlPlane, now.Workers, now.Gates["cni"].Version))
		return nil
	})
	want := []string{
		"1.36.3, workers [1.36.3], cni ", "1.36.3, workers [1.36.3], cni 1.1.0", "1.37.2, workers [1.36.3], cni 1.1.0",
		"1.37.2, workers [1.37.2], cni 1.1.0",
	}
	if err != nil || !slices.Equal(reported, want) {
		t.Errorf("it tells %q, want %q: %v", reported, want, err)
	}
}
