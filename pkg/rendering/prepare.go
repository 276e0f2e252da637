package rendering

import (
	"cmp"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/apply"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/hooks"
	"github.com/trellis-addons/trellis/pkg/ownership"
	"github.com/trellis-addons/trellis/pkg/render"
)

// CRDPolicy is that of a version, with its defaults filled in.
func CRDPolicy(template *v1.Template) v1.CRDPolicy {
	policy := v1.CRDPolicy{Apply: v1.CRDCreateReplace, Remove: v1.CRDRemoveWhenUnused}
	if template.Method == v1.MethodHelm {
		policy.Remove = v1.CRDRemoveKeep
	}
	if wanted := template.CRDs; wanted != nil {
		policy.Apply = cmp.Or(wanted.Apply, policy.Apply)
		policy.Remove = cmp.Or(wanted.Remove, policy.Remove)
	}
	return policy
}

// prepare makes rendered objects ready for the user cluster: images, namespaces, labels, limits.
func (r *Renderer) prepare(q *Request, rendered render.Result) (Result, error) {
	options := apply.Options{
		Owner:           q.Owner,
		TargetNamespace: q.targetNamespace(),
		// those of Kubernetes are always there
		CreateNamespace: q.Installation.Spec.CreateNamespace && !catalogue.IsKubeNamespace(q.targetNamespace()),
		CRDs:            CRDPolicy(q.Choice.Version.Template).Apply,
	}
	if rendered.Chart != nil {
		options.Helm = &ownership.HelmMarks{ReleaseName: q.releaseName(), ReleaseNamespace: q.targetNamespace()}
	}
	r.images.Rewrite(rendered.Objects)
	finalized := apply.Finalized(rendered.Objects)
	objects, err := apply.Prepare(rendered.Objects, q.Mapper, options)
	if err != nil {
		return Result{}, err
	}
	var run []hooks.Hook
	if rendered.Chart == nil {
		objects, run, err = hooksAmong(objects)
	} else {
		run, err = r.prepareHooks(q, rendered.Chart)
	}
	if err != nil {
		return Result{}, err
	}
	return Result{Objects: objects, Hooks: run, Finalized: finalized, Chart: rendered.Chart}, nil
}

// prepareHooks makes the hooks of a chart ready as its objects are. Two events may have hooks of
// one name, so each is prepared by itself. Helm does not mark hooks as its own, so neither do we.
func (r *Renderer) prepareHooks(q *Request, chart *render.Chart) ([]hooks.Hook, error) {
	var found []hooks.Hook
	for _, hook := range chart.Hooks {
		alone := []*unstructured.Unstructured{hook.Object}
		r.images.Rewrite(alone)
		prepared, err := apply.Prepare(alone, q.Mapper, apply.Options{Owner: q.Owner, TargetNamespace: q.targetNamespace()})
		if err != nil {
			return nil, fmt.Errorf("the hook of %q: %w", hook.Path, err)
		}
		encoded, err := json.Marshal(prepared[0].Object)
		if err != nil {
			return nil, fmt.Errorf("encoding the hook of %q: %w", hook.Path, err)
		}
		found = append(found, hooks.Hook{
			Path: hook.Path, Events: hook.Events, Weight: hook.Weight, DeletePolicies: hook.DeletePolicies, LogPolicies: hook.LogPolicies,
			Object: encoded,
		})
	}
	return found, nil
}
