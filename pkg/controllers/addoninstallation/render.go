package addoninstallation

import (
	"context"
	"errors"
	"time"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/apply"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/ownership"
	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/resolution"
	"github.com/trellis-addons/trellis/pkg/revision"
)

func addonOf(f *facts) string { return string(f.installation.Spec.AddonRef.Name) }

// inputs are all that the objects depend on.
func (r *Reconciler) inputs(f *facts) (resolution.Inputs, error) {
	served, err := r.servedVersions(f)
	return resolution.Inputs{
		Installation: f.installation, Choice: f.choice, Content: f.snapshot.Digest, Values: f.values, Images: r.Images.Canonical(),
		Data: f.data, KubernetesVersion: f.cluster.KubernetesVersion, Served: served,
	}, err
}

// hashInputs finds which inputs these are.
func (r *Reconciler) hashInputs(f *facts) error {
	inputs, err := r.inputs(f)
	if err != nil {
		return err
	}
	if f.inputs, err = inputs.Hash(r.InputsKey); err != nil {
		return err
	}
	f.wanted, err = inputs.Wanted(r.InputsKey)
	return err
}

// render makes objects of content and values: those on record for an intent with these inputs, those that are kept, or new
// ones.
func (r *Reconciler) render(ctx context.Context, f *facts) loop.Outcome {
	anew := rendersAnew(f)
	switch {
	case f.decision.IsApplied(), f.decision.IsUnderWay():
		r.compareRendering(ctx, f, anew)
		return nil
	case f.decision.Do == revision.GoBack:
		return readIntent(f)
	}
	if outcome := r.releaseNameFree(ctx, f); outcome != nil {
		return outcome
	}
	if outcome := r.helmReleaseFree(ctx, f); outcome != nil {
		return outcome
	}
	if f.decision.FromRecord {
		return readIntent(f)
	}
	if outcome := r.secretsAskedFor(f); outcome != nil {
		return outcome
	}
	if f.decision.Unasked && f.foreign == nil {
		if stays, outcome := r.staysAsRecorded(ctx, f); stays || outcome != nil {
			return outcome
		}
	}
	return r.renderChange(ctx, f, anew)
}

// renderChange renders what the next revision is to have, with what the user cluster serves but for what the content brings itself.
func (r *Reconciler) renderChange(ctx context.Context, f *facts, anew bool) loop.Outcome {
	seen := nextSight(f)
	var outcome loop.Outcome
	if seen.found, outcome = r.lookup(ctx, f); outcome != nil {
		return outcome
	}
	request, err := r.renderRequest(f, seen)
	if err != nil {
		return failed(err)
	}
	request.Anew = anew
	rendered, err := r.Renders.Render(ctx, request)
	if err != nil {
		return renderOutcome(err)
	}
	r.warnOfChanges(f, namesOf(f, rendered.Changed))
	f.rendered = rendered.Result
	if outcome := r.prepare(f); outcome != nil {
		return outcome
	}
	again, err := r.learnsOwn(f)
	switch {
	case err != nil:
		return failed(err)
	case again:
		return r.renderChange(ctx, f, anew) // each time with fewer groups
	}
	return nil
}

func (r *Reconciler) renderInput(f *facts, seen sight) render.Input {
	input := render.Input{
		Addon: addonOf(f), Tenant: tenantOf(f), Content: f.snapshot.FS, Values: f.values.Merged, Data: f.data,
		Release: render.Release{
			Name: releaseName(f), Namespace: f.installation.Spec.TargetNamespace, Revision: seen.revision, IsInstall: seen.isInstall,
		},
		Found: seen.found, GuardFound: f.choice.Core, OtherMoment: seen.otherMoment,
		Capabilities: render.Capabilities{KubeVersion: f.cluster.KubernetesVersion},
	}
	if f.choice.Version.Template.Method == kubermaticv1.MethodHelm { // nobody else sees them, and there are hundreds
		input.Capabilities.APIVersions = served(f)
	}
	if f.choice.SeesSecrets() || f.choice.Core && len(seen.found) > 0 {
		input.CatalogueValues = f.values.Layers[0].Values
	}
	if f.choice.Version.Template.Helm != nil {
		input.Release.DisableHooks = f.choice.Version.Template.Helm.DisableHooks
	}
	return input
}

// renderOutcome: what comes with the inputs waits for other inputs, what took a renderer with it for its time, and the
// machine's trouble for the next try.
func renderOutcome(err error) loop.Outcome {
	var none *render.NoManifestsError
	var limit *render.LimitError
	var putOff *render.PutOffError
	var dependencies *render.DependenciesMissingError
	stalled := loop.Stalled{Condition: kubermaticv1.ConditionRendered, Reason: kubermaticv1.ReasonRenderFailed, Message: err.Error()}
	switch {
	case errors.Is(err, render.ErrPending):
		return loop.Waiting{
			Condition: kubermaticv1.ConditionRendered, Reason: kubermaticv1.ReasonRendering, Message: err.Error(), Recheck: clusterRecheck,
		}
	case errors.As(err, &putOff):
		stalled.Reason, stalled.Recheck = kubermaticv1.ReasonLimitExceeded, max(time.Until(putOff.Until), time.Second)
	case errors.As(err, &none):
		stalled.Reason = kubermaticv1.ReasonNoManifests
	case errors.As(err, &limit):
		stalled.Reason = kubermaticv1.ReasonLimitExceeded
	case errors.As(err, &dependencies):
		stalled.Reason = kubermaticv1.ReasonDependenciesMissing
	case !render.Lasting(err):
		return loop.RetryAt{Condition: kubermaticv1.ConditionRendered, Reason: kubermaticv1.ReasonRenderFailed, Message: err.Error()}
	}
	return stalled
}

// prepare makes rendered objects ready for the user cluster: images, namespaces, labels, limits.
func (r *Reconciler) prepare(f *facts) loop.Outcome {
	spec := f.installation.Spec
	options := apply.Options{
		Owner:           f.owner,
		TargetNamespace: spec.TargetNamespace,
		CreateNamespace: spec.CreateNamespace && !catalogue.IsKubeNamespace(spec.TargetNamespace), // those are always there
		CRDs:            crdPolicy(f).Apply,
	}
	if f.rendered.Chart != nil {
		options.Helm = &ownership.HelmMarks{ReleaseName: releaseName(f), ReleaseNamespace: f.installation.Spec.TargetNamespace}
	}
	r.Images.Rewrite(f.rendered.Objects)
	objects, err := apply.Prepare(f.rendered.Objects, f.connection.Mapper, options)
	if err == nil {
		f.hooks, err = r.prepareHooks(f)
	}
	var limit *apply.LimitError
	if errors.As(err, &limit) {
		return loop.Stalled{Condition: kubermaticv1.ConditionRendered, Reason: kubermaticv1.ReasonLimitExceeded, Message: err.Error()}
	}
	if err != nil {
		return loop.Stalled{Condition: kubermaticv1.ConditionRendered, Reason: kubermaticv1.ReasonRenderFailed, Message: err.Error()}
	}
	f.objects = objects
	return nil
}
