package distributor

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

// notOwnedError: a generated catalogue says Core, and nothing that may say so owns it.
type notOwnedError struct{ name string }

func (e *notOwnedError) Error() string {
	return fmt.Sprintf("catalogue %q has role %s and type Core, and no Core catalogue in git owns it: it is not merged; delete it, or "+
		"write it without the role", e.name, v1.RoleGenerated)
}

// ownedCore refuses what was not generated from a Core catalogue in git and says Core: whoever wrote that needed no verb manage-core.
func ownedCore(found *reading, all []v1.AddonCatalogue) *reading {
	object := found.object
	if object.Labels[v1.LabelRole] != v1.RoleGenerated || object.Spec.Type != v1.CatalogueCore || found.reason == v1.ReasonWrongNamespace {
		return found
	}
	owner := metav1.GetControllerOf(object)
	for i := range all {
		parent := &all[i]
		if owner != nil && parent.UID == owner.UID && parent.Namespace == object.Namespace && parent.Labels[v1.LabelRole] == "" &&
			parent.Spec.Git != nil && parent.Spec.Type == v1.CatalogueCore {
			return found
		}
	}
	refused := &reading{object: object}
	refused.refuse(v1.ReasonCoreNotAllowed, &notOwnedError{object.Name})
	return refused
}

// leave gathers the versions that Core catalogues have clusters leave. Their annotations count whatever becomes of their specs.
func (r *Reconciler) leave(_ context.Context, p *pass) error {
	p.leave = catalogue.Leave{}
	for _, reading := range p.readings {
		object := reading.object
		reading.leave, reading.leaveProblem = nil, nil
		text := object.Annotations[v1.AnnotationLeaveVersions]
		if text == "" || object.Spec.Type != v1.CatalogueCore || object.Labels[v1.LabelRole] != "" || object.Namespace != r.options.Namespace {
			continue
		}
		reading.leave, reading.leaveProblem = catalogue.ReadLeave(text)
		p.leave.Add(reading.leave)
	}
	return nil
}
