package installation

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/budget"
)

// Intent is the object that a controller applies for an installation by server-side apply: every field that the
// controller owns. Other fields belong to other clients.
type Intent struct {
	Namespace, Name string
	// Origin is covered by the digest in addition to the spec.
	Origin              string
	Labels, Annotations map[string]string
	// Stamps are annotations about the write itself: they may differ on a correct installation.
	Stamps     map[string]string
	Finalizers []string
	Spec       v1.AddonInstallationSpec
	// Digested is the digest of an intent that many clusters share, and that this one was made from. Empty: its own
	// digest counts.
	Digested string
	// OwnsPaused says that spec.paused is the controller's; otherwise other clients may set it.
	OwnsPaused bool
}

// Content is the object to apply, and the digest that is among its annotations. The digest shows that an intent
// changed, even if only by removed fields.
func (i Intent) Content() (content map[string]any, digest string, err error) {
	spec, digest, err := i.encode()
	if err != nil {
		return nil, "", err
	}
	annotations := map[string]any{v1.AnnotationDigest: digest}
	for _, some := range []map[string]string{i.Annotations, i.Stamps} {
		for key, value := range some {
			annotations[key] = value
		}
	}
	labels := map[string]any{}
	for key, value := range i.Labels {
		labels[key] = value
	}
	metadata := map[string]any{"namespace": i.Namespace, "name": i.Name, "labels": labels, "annotations": annotations}
	if len(i.Finalizers) > 0 {
		finalizers := make([]any, 0, len(i.Finalizers))
		for _, finalizer := range i.Finalizers {
			finalizers = append(finalizers, finalizer)
		}
		metadata["finalizers"] = finalizers
	}
	return map[string]any{
		"apiVersion": v1.GroupVersion.String(), "kind": "AddonInstallation", "metadata": metadata, "spec": spec,
	}, digest, nil
}

// Digest of the intent.
func (i Intent) Digest() (string, error) {
	_, digest, err := i.encode()
	return digest, err
}

func (i Intent) encode() (spec map[string]any, digest string, err error) {
	spec, err = runtime.DefaultUnstructuredConverter.ToUnstructured(&i.Spec)
	if err != nil {
		return nil, "", fmt.Errorf("reading the intent of installation %q: %w", i.Name, err)
	}
	// Written even if they are false, so that another writer's true is replaced.
	spec["createNamespace"] = i.Spec.CreateNamespace
	if i.OwnsPaused {
		spec["paused"] = i.Spec.Paused
	}
	if i.Digested != "" {
		return spec, i.Digested, nil
	}
	encoded, err := json.Marshal([]any{i.Origin, spec})
	if err != nil {
		return nil, "", fmt.Errorf("encoding the intent of installation %q: %w", i.Name, err)
	}
	sum := sha256.Sum256(encoded)
	return spec, hex.EncodeToString(sum[:]), nil
}

// IsRight says whether an installation matches an intent with this digest, ignoring additions of other clients:
// values, labels and annotations other than the intent's, except for a grant.
func IsRight(live *v1.AddonInstallation, wanted *Intent, digest string) bool {
	if live.Annotations[v1.AnnotationDigest] != digest || !holds(live.Annotations, wanted.Annotations) ||
		live.Annotations[v1.AnnotationPlatformValues] != wanted.Annotations[v1.AnnotationPlatformValues] || !holds(live.Labels, wanted.Labels) {
		return false
	}
	for _, finalizer := range wanted.Finalizers {
		if !slices.Contains(live.Finalizers, finalizer) {
			return false
		}
	}
	return equality.Semantic.DeepEqual(wanted.owned(live.Spec), wanted.owned(wanted.Spec)) &&
		(budget.IsStub(live) || holdsValues(live, &wanted.Spec)) &&
		(len(wanted.Spec.ValuesFrom) == 0 || equality.Semantic.DeepEqual(live.Spec.ValuesFrom, wanted.Spec.ValuesFrom))
}

func holds(have, want map[string]string) bool {
	for key, value := range want {
		if there, ok := have[key]; !ok || there != value {
			return false
		}
	}
	return true
}

// owned is the part of a spec that only the controller may set.
func (i *Intent) owned(spec v1.AddonInstallationSpec) v1.AddonInstallationSpec {
	spec.Values, spec.ValuesFrom = nil, nil
	if i.Spec.ClusterName == "" { // KKP's may be named, and the name can't be removed
		spec.ClusterName = ""
	}
	if !i.OwnsPaused {
		spec.Paused = false
	}
	return spec
}

// holdsValues says whether the intent's values are there, with or without others.
func holdsValues(live *v1.AddonInstallation, wanted *v1.AddonInstallationSpec) bool {
	if wanted.Values == nil {
		return true
	}
	if live.Spec.Values == nil {
		return false
	}
	if bytes.Equal(live.Spec.Values.Raw, wanted.Values.Raw) { // the usual case: API servers store what was sent
		return true
	}
	var have, want any
	if json.Unmarshal(live.Spec.Values.Raw, &have) != nil || json.Unmarshal(wanted.Values.Raw, &want) != nil {
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
