package addoninstallation

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/hooks"
	"github.com/trellis-addons/trellis/pkg/loop"
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

// allowed refuses, before anything is recorded or written, what an add-on of a Custom catalogue may not have. What is applied
// already was allowed when it was, and stays.
func (r *Reconciler) allowed(_ context.Context, f *facts) loop.Outcome {
	if f.choice.Core || f.Decision.IsRecorded() {
		return nil
	}
	restrictions := r.Options.Restrictions
	run, broken := hooks.Objects(f.Hooks)
	if broken != nil {
		return failed(broken)
	}
	err := checkTarget(f.installation.Spec.TargetNamespace, restrictions)
	if err == nil {
		err = checkObjects(f.Objects, restrictions)
	}
	if err == nil {
		err = checkObjects(run, restrictions)
	}
	if err == nil {
		return nil
	}
	return loop.Stalled{Condition: kubermaticv1.ConditionRendered, Reason: kubermaticv1.ReasonNotAllowed, Message: err.Error()}
}

// checkTarget is for the namespace that the installation's user chose. The error is a *NotAllowedError.
func checkTarget(namespace string, restrictions catalogue.Restrictions) error {
	if problem := restrictions.Target(namespace); problem != "" {
		return &NotAllowedError{Subject: fmt.Sprintf("targetNamespace %q", namespace), Problem: problem}
	}
	return nil
}

// checkObjects is for everything that is written for a Custom catalogue's add-on, a chart's hooks too. It names the first
// object that is refused; the error is a *NotAllowedError.
func checkObjects(objects []*unstructured.Unstructured, restrictions catalogue.Restrictions) error {
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
