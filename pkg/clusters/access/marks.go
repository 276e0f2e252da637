package access

import (
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// marks identify the owner of an object on the seed.
type marks struct {
	id, installation string
	cluster          metav1.OwnerReference
}

func (h Holder) marks() marks {
	return marks{id: h.Owner.ID(), installation: h.Installation, cluster: h.ClusterOwner}
}

func (m marks) meta(namespace, name string) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
	m.put(&meta)
	return meta
}

// put keeps labels and annotations of others, but no owner: another owner would keep the object after the Cluster is
// deleted.
func (m marks) put(object metav1.Object) {
	labels, annotations := object.GetLabels(), object.GetAnnotations()
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	labels[v1.LabelAccess], annotations[v1.AnnotationAccessOf] = m.id, m.installation
	object.SetLabels(labels)
	object.SetAnnotations(annotations)
	object.SetOwnerReferences([]metav1.OwnerReference{m.cluster})
}

func (m marks) areOn(object metav1.Object) bool {
	return object.GetLabels()[v1.LabelAccess] == m.id && object.GetAnnotations()[v1.AnnotationAccessOf] == m.installation &&
		apiequality.Semantic.DeepEqual(object.GetOwnerReferences(), []metav1.OwnerReference{m.cluster})
}

// whose says who owns an object that has one of our names.
type whose int

const (
	// anothers is not touched.
	anothers whose = iota
	// ours may have been edited.
	ours
	// ofPrevious belongs to a previous Cluster of the name. Credentials issued for it are worthless.
	ofPrevious
)

// whose accepts two of the three marks as ours: an edit that removes one is repaired. A client that can write all of them can
// write the object too.
func (m marks) whose(object metav1.Object) whose {
	owners := object.GetOwnerReferences()
	hasLabel := object.GetLabels()[v1.LabelAccess] == m.id
	isNamed := object.GetAnnotations()[v1.AnnotationAccessOf] == m.installation
	isOwned := slices.ContainsFunc(owners, func(owner metav1.OwnerReference) bool { return owner.UID == m.cluster.UID })
	switch {
	case isNamed && !isOwned && slices.ContainsFunc(owners, m.isPrevious):
		return ofPrevious
	case hasLabel && isNamed, isOwned && (hasLabel || isNamed):
		return ours
	}
	return anothers
}

func (m marks) isPrevious(owner metav1.OwnerReference) bool {
	return owner.Kind == m.cluster.Kind && owner.Name == m.cluster.Name && owner.UID != m.cluster.UID &&
		groupOf(owner) == groupOf(m.cluster)
}

func groupOf(owner metav1.OwnerReference) string {
	version, err := schema.ParseGroupVersion(owner.APIVersion)
	if err != nil {
		return owner.APIVersion
	}
	return version.Group
}
