package addoninstallation

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/loop"
)

// What add-ons may write is decided with their catalogue. Two things are kept for Core catalogues (ADR 23).
const (
	// reservedPrefix begins the names of the namespaces that belong to the cluster itself.
	reservedPrefix = "kube-"
	// podSecurityPrefix begins the labels by which a Namespace says what its Pods may do.
	podSecurityPrefix = "pod-security.kubernetes.io/"
)

var namespaceKind = schema.GroupKind{Kind: "Namespace"}

// NotAllowedError says that an add-on of a Custom catalogue wants what only those of Core catalogues get.
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
	if f.core || f.unchanged || f.rollingOut || f.givenUp {
		return nil
	}
	err := checkTarget(f.installation.Spec.TargetNamespace)
	if err == nil {
		err = checkObjects(f.objects)
	}
	hooks, broken := hookObjects(f.hooks)
	if broken != nil {
		return failed(broken)
	}
	if err == nil {
		err = checkObjects(hooks)
	}
	if err == nil {
		return nil
	}
	return loop.Stalled{Condition: kubermaticv1.ConditionRendered, Reason: kubermaticv1.ReasonNotAllowed, Message: err.Error()}
}

// checkTarget is for the namespace that the installation's user chose. The error is a *NotAllowedError.
func checkTarget(namespace string) error {
	if !strings.HasPrefix(namespace, reservedPrefix) {
		return nil
	}
	return &NotAllowedError{
		Subject: fmt.Sprintf("targetNamespace %q", namespace),
		Problem: "namespaces kube-* are for add-ons of Core catalogues: make the installation anew with another targetNamespace",
	}
}

// checkObjects is for everything that is written for a Custom catalogue's add-on, a chart's hooks too. It names the first
// object that is refused; the error is a *NotAllowedError.
func checkObjects(objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		if problem := problemOf(object); problem != "" {
			return &NotAllowedError{Subject: nameOf(object), Problem: problem}
		}
	}
	return nil
}

func problemOf(object *unstructured.Unstructured) string {
	isNamespace := object.GroupVersionKind().GroupKind() == namespaceKind
	switch {
	case strings.HasPrefix(object.GetNamespace(), reservedPrefix):
		return "objects in namespaces kube-* come from Core catalogues only: take it out of the add-on, or have the add-on put into one"
	case isNamespace && strings.HasPrefix(object.GetName(), reservedPrefix):
		return "namespaces kube-* come from Core catalogues only: take it out of the add-on, or have the add-on put into one"
	case isNamespace && hasPodSecurity(object):
		return "labels pod-security.kubernetes.io/* come from Core catalogues only: take them off the manifest, or have the add-on " +
			"put into one"
	}
	return ""
}

func hasPodSecurity(object *unstructured.Unstructured) bool {
	for key := range object.GetLabels() {
		if strings.HasPrefix(key, podSecurityPrefix) {
			return true
		}
	}
	return false
}
