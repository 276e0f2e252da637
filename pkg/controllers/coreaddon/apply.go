package coreaddon

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/fleet/addonset"
	"github.com/trellis-addons/trellis/pkg/fleet/waves"
)

// fieldOwner is the field manager of this controller's writes.
const fieldOwner = "trellis-core-addon"

// apply creates and updates the installations of the set. A failed write does not stop the others.
func (r *Reconciler) apply(ctx context.Context, f *facts) *loop.Outcome {
	if f.failures == nil {
		f.failures = map[string]error{}
	}
	for _, change := range f.plan.apply {
		live, err := r.applyOne(ctx, f, change)
		if err != nil {
			f.failures[change.wanted.name] = err
			r.noteRefused(f, change.wanted.name, err)
			continue
		}
		f.wrote = true
		r.noteWritten(f, live, false)
		if f.inForce != nil && !change.stays {
			r.moves.Add(1)
		}
		if change.live == nil {
			f.plan.members = append(f.plan.members, live)
		}
		if !isApplied(live, change.wanted) {
			f.failures[change.wanted.name] = fmt.Errorf(
				"installation %q was stored with content that differs from what was written: check admission webhooks and the version of the CRD",
				change.wanted.name)
		}
	}
	return nil
}

func (r *Reconciler) applyOne(ctx context.Context, f *facts, c change) (*v1.AddonInstallation, error) {
	if c.live != nil && !canBe(c.live, c.wanted) {
		isKnown := true
		if c.wanted.addon() != string(c.live.Spec.AddonRef.Name) {
			offered, err := r.mergedOf(ctx, c.wanted.addon())
			if err != nil {
				return nil, err
			}
			isKnown = offered != nil
		}
		_, message := c.unchangeable(isKnown)
		return nil, errors.New(message)
	}
	meant := intent(f.asked.Namespace, c.wanted)
	if f.inForce != nil {
		ended, cancel := context.WithTimeout(ctx, waves.WriteTimeout)
		defer cancel()
		ctx, meant.Stamps = ended, c.stampsOf(f.inForce)
	}
	content, _, err := meant.Content()
	if err != nil {
		return nil, err
	}
	object := &v1.AddonInstallation{}
	object.Namespace, object.Name = f.asked.Namespace, c.wanted.name
	if err := r.patch(ctx, f, object, body{types.ApplyPatchType, content}, client.ForceOwnership); err != nil {
		return nil, fmt.Errorf("applying installation %q: %w", c.wanted.name, err)
	}
	none := foreign(object, c.wanted)
	if none == nil {
		return object, nil
	}
	if err := r.patch(ctx, f, object, body{types.MergePatchType, none}); err != nil {
		return nil, fmt.Errorf("removing version and dependencies from installation %q: %w", c.wanted.name, err)
	}
	return object, nil
}

// unchangeable reports which immutable field of the installation differs from the list. Argument known reports
// whether a catalogue has the add-on that the list names.
func (c *change) unchangeable(known bool) (reason, message string) {
	fixed := func(of *v1.AddonInstallationSpec) addonset.Fixed {
		return addonset.Fixed{Addon: string(of.AddonRef.Name), TargetNamespace: of.TargetNamespace, ReleaseName: of.ReleaseName}
	}
	return addonset.CannotChange(c.wanted.name, fixed(&c.live.Spec), fixed(&c.wanted.spec), known)
}

// body is the content of a patch.
type body struct {
	kind    types.PatchType
	content map[string]any
}

func (r *Reconciler) patch(ctx context.Context, f *facts, object client.Object, sent body, options ...client.PatchOption) error {
	encoded, err := json.Marshal(sent.content)
	if err != nil {
		return err
	}
	err = r.Client.Patch(ctx, object, client.RawPatch(sent.kind, encoded), append(options, client.FieldOwner(fieldOwner))...)
	if err != nil {
		r.noteAnswer(f, object.GetName(), err)
	}
	return err
}
