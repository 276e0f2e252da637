package rendering

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trellis-addons/trellis/pkg/catalogue"
)

// podSecurityPrefix begins the labels by which a Namespace says what its Pods may do.
const podSecurityPrefix = "pod-security.kubernetes.io/"

var namespaceKind = schema.GroupKind{Kind: "Namespace"}

// NotAllowedError says that an add-on of a Custom catalogue wants what it does not get.
type NotAllowedError struct {
	// Subject is the object, or the installation's field, as people write it.
	Subject string
	// Problem says what it wants, and what to do.
	Problem string
}

func (e *NotAllowedError) Error() string { return e.Subject + ": " + e.Problem }

// Allowed checks everything that is written for an add-on of a Custom catalogue, a chart's hooks
// too, and the namespace that the installation's user chose. The error is a *NotAllowedError about
// the first that is refused.
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

// problemOf: Namespaces of Kubernetes itself are never an add-on's, whatever its seed lets in.
func problemOf(object *unstructured.Unstructured, restrictions catalogue.Restrictions) string {
	isNamespace := object.GroupVersionKind().GroupKind() == namespaceKind
	switch {
	case isNamespace && catalogue.IsKubeNamespace(object.GetName()):
		return "this Namespace is the cluster's own: take it out of the add-on, which may count on its being there"
	case restrictions.KubeNamespaces && catalogue.IsKubeNamespace(object.GetNamespace()):
		return closedBy(catalogue.RestrictKubeNamespaces, "objects in that namespace")
	case restrictions.PodSecurity && isNamespace && hasPodSecurity(object):
		return closedBy(catalogue.RestrictPodSecurity, "labels pod-security.kubernetes.io/*")
	}
	return ""
}

// closedBy names the restriction, and the two ways out.
func closedBy(restriction, what string) string {
	return fmt.Sprintf("this seed keeps %s for add-ons of Core catalogues (%s=%s): take it out of the add-on, or have the add-on put into one",
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
