package apply

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
)

// Options say how rendered objects become the objects of an installation.
type Options struct {
	Owner           ownership.Owner
	TargetNamespace string
	CreateNamespace bool
	// Helm marks the objects as members of a Helm release; nil for go-template.
	Helm *ownership.HelmMarks
	// CRDs says how CustomResourceDefinitions are written; "" is CreateReplace.
	CRDs kubermaticv1.CRDApply
}

// The label by which Helm identifies its objects, from helm.sh/helm/v3/pkg/action/validate.go.
const (
	helmManagedByLabel = "app.kubernetes.io/managed-by"
	helmManagedByValue = "Helm"
)

// Prepare turns rendered objects into the objects of an installation, in order. It is pure and idempotent.
//
//   - Lists are unpacked; Secrets' stringData becomes data (server-side apply does not remove keys
//     of stringData).
//   - Namespaced objects without a namespace get the target namespace. The mapper, or a CRD among
//     the objects, knows the scope. If neither does, the rollout waits with the object
//     (KindNotServed) and sets its namespace once the kind is served.
//   - Status, generateName and server metadata are removed; ownerReferences and finalizers too,
//     since they would decide about removal.
//   - Each object gets our label, and Helm's marks if requested, except the release's own namespace.
//
// Errors are *LimitError, *DuplicateError and *ObjectError; others are from the mapper.
func Prepare(objects []*unstructured.Unstructured, mapper meta.RESTMapper, options Options) ([]*unstructured.Unstructured, error) {
	flat, err := unpack(objects)
	if err != nil {
		return nil, err
	}
	if len(flat) > ownership.MaxObjects {
		return nil, &LimitError{What: "objects", Max: ownership.MaxObjects}
	}
	preparer := preparer{options: options, mapper: mapper, declared: calls.DeclaredKinds(flat)}
	prepared := make([]*unstructured.Unstructured, 0, len(flat)+1)
	for index, object := range flat {
		if calls.IsCRD(object) && options.CRDs == kubermaticv1.CRDSkip {
			continue
		}
		next, err := preparer.prepare(index, object)
		if err != nil {
			return nil, err
		}
		prepared = append(prepared, next)
	}
	isTarget := func(object *unstructured.Unstructured) bool {
		return calls.IsNamespace(object) && object.GetName() == options.TargetNamespace
	}
	if options.CreateNamespace && !slices.ContainsFunc(prepared, isTarget) {
		prepared = append([]*unstructured.Unstructured{preparer.ownNamespace()}, prepared...)
	}
	if err := checkDuplicates(prepared); err != nil {
		return nil, err
	}
	return prepared, checkSizes(prepared)
}

// Finalized names the rendered objects whose finalizers Prepare removes. It is never nil.
func Finalized(objects []*unstructured.Unstructured) []string {
	names := []string{}
	flat, err := unpack(objects)
	if err != nil { // Prepare reports it
		return names
	}
	for _, object := range flat {
		if len(object.GetFinalizers()) > 0 {
			names = append(names, calls.CutText(ownership.KeyOf(object).String()))
		}
	}
	return names
}

// ObjectsDigest is the SHA-256, in hex, of objects in the given order.
func ObjectsDigest(objects []*unstructured.Unstructured) string {
	sum := sha256.New()
	for _, object := range objects {
		sum.Write([]byte(ownership.ContentDigest(object)))
	}
	return hex.EncodeToString(sum.Sum(nil))
}

type preparer struct {
	options  Options
	mapper   meta.RESTMapper
	declared map[schema.GroupVersionKind]calls.Resource
}

func (p preparer) prepare(index int, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if problem := identityProblem(object); problem != "" {
		return nil, &ObjectError{Object: ownership.KeyOf(object), Index: index, Problem: problem}
	}
	next := &unstructured.Unstructured{Object: maps.Clone(object.Object)}
	delete(next.Object, "status")
	metadata, problem := cleanMetadata(object)
	if problem != "" {
		return nil, &ObjectError{Object: ownership.KeyOf(object), Index: index, Problem: problem}
	}
	next.Object["metadata"] = metadata
	if err := p.defaultNamespace(next); err != nil {
		return nil, err
	}
	if problem := foldStringData(next); problem != "" {
		return nil, &ObjectError{Object: ownership.KeyOf(object), Index: index, Problem: problem}
	}
	if hasDirective(next.Object["spec"]) && scheme.Scheme.Recognizes(next.GroupVersionKind()) { // custom resources may have such a field
		next.Object["spec"] = withoutDirectives(next.Object["spec"])
	}
	p.mark(next)
	return next, nil
}

func (p preparer) defaultNamespace(object *unstructured.Unstructured) error {
	namespaced, known, err := p.scopeOf(object.GroupVersionKind())
	switch {
	case err != nil:
		return fmt.Errorf("looking up the kind of %q: %w", ownership.KeyOf(object), err)
	case known && !namespaced:
		unstructured.RemoveNestedField(object.Object, "metadata", "namespace")
	case known && object.GetNamespace() == "":
		object.SetNamespace(p.options.TargetNamespace)
	}
	return nil
}

func (p preparer) scopeOf(kind schema.GroupVersionKind) (namespaced, known bool, err error) {
	if own, found := p.declared[kind]; found {
		return own.Namespaced, true, nil
	}
	mapping, err := p.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return false, false, nil
	}
	if err != nil {
		return false, false, err
	}
	return mapping.Scope.Name() == meta.RESTScopeNameNamespace, true, nil
}

func (p preparer) mark(object *unstructured.Unstructured) {
	labels, annotations := object.GetLabels(), object.GetAnnotations()
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	labels[kubermaticv1.LabelInstallation] = p.options.Owner.ID()
	if calls.IsNamespace(object) {
		labels[kubermaticv1.LabelCreatedBy] = p.options.Owner.ID()
	}
	if calls.IsCRD(object) && p.options.CRDs == kubermaticv1.CRDCreate {
		annotations[kubermaticv1.AnnotationUpdate] = updateCreateOnly
	}
	if helm := p.options.Helm; helm != nil && (!calls.IsNamespace(object) || object.GetName() != helm.ReleaseNamespace) {
		labels[helmManagedByLabel] = helmManagedByValue
		annotations[ownership.HelmReleaseAnnotation] = helm.ReleaseName
		annotations[ownership.HelmNamespaceAnnotation] = helm.ReleaseNamespace
	}
	object.SetLabels(labels)
	if len(annotations) > 0 {
		object.SetAnnotations(annotations)
	}
}

func (p preparer) ownNamespace() *unstructured.Unstructured {
	namespace := &unstructured.Unstructured{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	namespace.SetName(p.options.TargetNamespace)
	p.mark(namespace)
	return namespace
}
