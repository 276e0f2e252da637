package coreaddon

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// intent is what is applied for a core add-on: every field that the controller owns. The digest
// shows that an intent changed, of which some fields have to be removed.
func intent(namespace string, one wanted) (content map[string]any, digest string, err error) {
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&one.spec)
	if err != nil {
		return nil, "", fmt.Errorf("reading the intent of core add-on %q: %w", one.name, err)
	}
	// Written even where they are false, so that another writer's true is replaced.
	spec["createNamespace"], spec["paused"] = one.spec.CreateNamespace, one.spec.Paused
	encoded, err := json.Marshal([]any{one.origin, spec})
	if err != nil {
		return nil, "", fmt.Errorf("encoding the intent of core add-on %q: %w", one.name, err)
	}
	sum := sha256.Sum256(encoded)
	digest = hex.EncodeToString(sum[:])
	return map[string]any{
		"apiVersion": v1.GroupVersion.String(), "kind": "AddonInstallation",
		"metadata": map[string]any{
			"namespace": namespace, "name": one.name,
			"labels":      map[string]any{v1.LabelManagedBy: v1.ManagedByCoreAddons},
			"annotations": map[string]any{v1.AnnotationCoreOrigin: one.origin, v1.AnnotationDigest: digest},
			"finalizers":  []any{v1.FinalizerCoreProtection},
		},
		"spec": spec,
	}, digest, nil
}

// isApplied says whether an installation is as wanted, apart from what a cluster admin may add.
func isApplied(live *v1.AddonInstallation, one wanted) bool {
	_, digest, err := intent(live.Namespace, one)
	if err != nil || live.Annotations[v1.AnnotationDigest] != digest ||
		live.Annotations[v1.AnnotationCoreOrigin] != one.origin ||
		live.Labels[v1.LabelManagedBy] != v1.ManagedByCoreAddons ||
		!slices.Contains(live.Finalizers, v1.FinalizerCoreProtection) {
		return false
	}
	return equality.Semantic.DeepEqual(owned(live.Spec), owned(one.spec)) && holdsValues(live, one) &&
		(len(one.spec.ValuesFrom) == 0 || equality.Semantic.DeepEqual(live.Spec.ValuesFrom, one.spec.ValuesFrom))
}

// owned is the part of a spec that only we may set.
func owned(spec v1.AddonInstallationSpec) v1.AddonInstallationSpec {
	spec.Values, spec.ValuesFrom = nil, nil
	return spec
}

// foreign is what others set where the set has nothing, as a patch that removes it; nil for none:
// a version, and what the core add-on would wait for.
func foreign(live *v1.AddonInstallation, one wanted) map[string]any {
	spec := map[string]any{}
	if one.spec.AddonRef.Version == "" && live.Spec.AddonRef.Version != "" {
		spec["addonRef"] = map[string]any{"version": nil}
	}
	if len(live.Spec.DependsOn) > 0 {
		spec["dependsOn"] = nil
	}
	if len(spec) == 0 {
		return nil
	}
	return map[string]any{"spec": spec}
}

// holdsValues says whether the values of the core item are there, with or without others.
func holdsValues(live *v1.AddonInstallation, one wanted) bool {
	if one.spec.Values == nil {
		return true
	}
	if live.Spec.Values == nil {
		return false
	}
	var have, want any
	if json.Unmarshal(live.Spec.Values.Raw, &have) != nil || json.Unmarshal(one.spec.Values.Raw, &want) != nil {
		return false
	}
	return contains(have, want)
}

func contains(have, want any) bool {
	wantMap, isMap := want.(map[string]any)
	haveMap, isMapToo := have.(map[string]any)
	if !isMap || !isMapToo {
		return reflect.DeepEqual(have, want)
	}
	for key, value := range wantMap {
		there, ok := haveMap[key]
		if !ok || !contains(there, value) {
			return false
		}
	}
	return true
}
