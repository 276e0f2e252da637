package rendering

import (
	"cmp"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/apply"
	"github.com/trellis-addons/trellis/pkg/install/hooks"
	"github.com/trellis-addons/trellis/pkg/render"
)

// CRDPolicy is that of a version, with defaults.
func CRDPolicy(template *v1.Template) v1.CRDPolicy {
	policy := v1.CRDPolicy{Apply: v1.CRDCreateReplace, Remove: v1.CRDRemoveWhenUnused}
	if catalogue.TraitsOf(template.Method).KeepsCRDs {
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
	if (rendered.Chart != nil) != q.traits().IsChart {
		return Result{}, &render.ProtocolError{Problem: "the answer is of another method"}
	}
	options := apply.Options{
		Owner:           q.Owner,
		TargetNamespace: q.targetNamespace(),
		// Kubernetes' own namespaces always exist.
		CreateNamespace: q.Installation.Spec.CreateNamespace && !catalogue.IsKubeNamespace(q.targetNamespace()),
		CRDs:            CRDPolicy(q.Choice.Version.Template).Apply,
	}
	if q.traits().HasRelease {
		options.Helm = &ownership.HelmMarks{ReleaseName: q.releaseName(), ReleaseNamespace: q.targetNamespace()}
	}
	r.imagesOf(q).Rewrite(rendered.Objects)
	finalized := apply.Finalized(rendered.Objects)
	objects, err := apply.Prepare(rendered.Objects, q.Mapper, options)
	if err != nil {
		return Result{}, err
	}
	var run []hooks.Hook
	if q.traits().IsChart {
		run, err = r.prepareHooks(q, rendered.Chart)
	} else {
		objects, run, err = hooksAmong(objects)
	}
	if err != nil {
		return Result{}, err
	}
	return Result{Objects: objects, Hooks: run, Finalized: finalized, Chart: rendered.Chart}, nil
}

// prepareHooks prepares the hooks of a chart as its objects. Two events may have hooks of one name, so each is
// prepared separately. Helm does not mark hooks as its own, so Trellis does not either.
func (r *Renderer) prepareHooks(q *Request, chart *render.Chart) ([]hooks.Hook, error) {
	var found []hooks.Hook
	for _, hook := range chart.Hooks {
		alone := []*unstructured.Unstructured{hook.Object}
		r.imagesOf(q).Rewrite(alone)
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
