package addoninstallation

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trellis-addons/trellis/pkg/apply"
	"github.com/trellis-addons/trellis/pkg/hooks"
	"github.com/trellis-addons/trellis/pkg/render"
)

// prepareHooks makes the hooks of a chart ready as its objects are: images, namespaces, labels. Two events may have hooks of
// one name, so each is prepared by itself. Helm does not mark hooks as its own, so neither do we.
func (r *Reconciler) prepareHooks(f *facts, chart *render.Chart) ([]hooks.Hook, error) {
	if chart == nil {
		return nil, nil
	}
	var found []hooks.Hook
	for _, hook := range chart.Hooks {
		alone := []*unstructured.Unstructured{hook.Object}
		r.Images.Rewrite(alone)
		prepared, err := apply.Prepare(alone, f.Connection.Mapper, apply.Options{
			Owner: f.Owner, TargetNamespace: f.installation.Spec.TargetNamespace,
		})
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
