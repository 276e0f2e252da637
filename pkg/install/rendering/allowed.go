package rendering

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trellis-addons/trellis/pkg/catalogue"
)

// podSecurityPrefix is the prefix of the labels of a Namespace that limit the rights of its Pods.
const podSecurityPrefix = "pod-security.kubernetes.io/"

var namespaceKind = schema.GroupKind{Kind: "Namespace"}

// NotAllowedError reports that an add-on of a Custom catalogue may not have an object or a target namespace.
type NotAllowedError struct {
	// Subject is the object, or the installation's field, as users write it.
	Subject string
	// Problem is the restriction, and how to avoid it.
	Problem string
}

func (e *NotAllowedError) Error() string { return e.Subject + ": " + e.Problem }

// Allowed checks all objects of an add-on of a Custom catalogue, also a chart's hooks, and the namespace that the
// installation's user chose. The error is a *NotAllowedError about the first that is refused.
func Allowed(targetNamespace string, objects []*unstructured.Unstructured, restrictions catalogue.Restrictions) error {
	if problem := restrictions.Target(targetNamespace); problem != "" {
		return &NotAllowedError{Subject: fmt.Sprintf("targetNamespace %q", targetNamespace), Problem: problem}
	}
	for _, object := range objects {
		if problem := problemOf(object, restrictions); problem != "" {
			return &NotAllowedError{Subject: nameOf(object), Problem: problem}
		}
	}
	return nil
}

// problemOf is the reason why an object is refused; "": it is allowed. Namespaces of Kubernetes itself never belong
// to an add-on, regardless of the seed's restrictions.
func problemOf(object *unstructured.Unstructured, restrictions catalogue.Restrictions) string {
	isNamespace := object.GroupVersionKind().GroupKind() == namespaceKind
	switch {
	case isNamespace && catalogue.IsKubeNamespace(object.GetName()):
		return "this Namespace belongs to the cluster and always exists: remove it from the add-on"
	case restrictions.KubeNamespaces && catalogue.IsKubeNamespace(object.GetNamespace()):
		return closedBy(catalogue.RestrictKubeNamespaces, "objects in that namespace")
	case restrictions.PodSecurity && isNamespace && hasPodSecurity(object):
		return closedBy(catalogue.RestrictPodSecurity, "labels pod-security.kubernetes.io/*")
	}
	return ""
}

// closedBy names the restriction, and the two ways to avoid it.
func closedBy(restriction, what string) string {
	return fmt.Sprintf("this seed allows %s only for add-ons of Core catalogues (%s=%s): remove it from the add-on, or move the add-on to "+
		"a Core catalogue",
		what, catalogue.FlagRestrictions, restriction)
}

func hasPodSecurity(object *unstructured.Unstructured) bool {
	for key := range object.GetLabels() {
		if strings.HasPrefix(key, podSecurityPrefix) {
			return true
		}
	}
	return false
}
