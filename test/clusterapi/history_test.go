package clusterapi

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

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
	var told []string
	err := h.Tell(func(now Progress) error {
		told = append(told, fmt.Sprintf("%s, workers %v, cni %s", now.ControlPlane, now.Workers, now.Gates["cni"].Version))
		return nil
	})
	want := []string{
		"1.36.3, workers [1.36.3], cni ", "1.36.3, workers [1.36.3], cni 1.1.0", "1.37.1, workers [1.36.3], cni 1.1.0",
		"1.37.1, workers [1.37.1], cni 1.1.0",
	}
	if err != nil || !slices.Equal(told, want) {
		t.Errorf("it tells %q, want %q: %v", told, want, err)
	}
}
