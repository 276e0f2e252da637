package addoninstallation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/install/hooks"
	"github.com/trellis-addons/trellis/pkg/install/installer"
	"github.com/trellis-addons/trellis/pkg/install/rendering"
	"github.com/trellis-addons/trellis/pkg/install/survey"
	"github.com/trellis-addons/trellis/pkg/render"
)

// mostNamed is how many objects an event names.
const mostNamed = 5

// request has everything that the objects of the installation depend on.
func (r *Reconciler) request(f *facts) rendering.Request {
	return rendering.Request{
		Installation: f.installation, Choice: f.choice, Values: f.values, Data: f.data, Content: f.snapshot,
		Cluster: f.cluster, Owner: f.run.Owner, Mapper: f.run.Connection.Mapper, APIVersions: f.run.Connection.APIVersions, Installed: &f.run,
		Inputs: f.inputs, Brought: f.memory.brought, Wake: r.waker(f.installation),
	}
}

// render makes objects of content and values: the recorded ones for an intent with these inputs, kept ones, or new
// ones.
func (r *Reconciler) render(ctx context.Context, f *facts) *loop.Outcome {
	again := f.memory.rendersAgain(f.run.Asked.ReconcileAt)
	switch {
	case f.run.Decision.IsApplied(), f.run.Decision.IsUnderWay():
		r.compareRendering(ctx, f, again)
		return nil
	case f.run.Decision.IsBegun():
		return f.run.ReadIntent()
	}
	if outcome := r.releaseNameFree(ctx, f); outcome != nil {
		return outcome
	}
	if stop := f.run.CheckRelease(ctx, releaseName(f)); stop != nil {
		return stop
	}
	if f.run.Decision.FromRecord {
		return f.run.ReadIntent()
	}
	request := r.request(f)
	request.Rerender, request.Unasked = again, f.run.Decision.Unasked && f.run.Foreign == nil
	made, err := r.renderer.Render(ctx, request)
	f.inputs, f.memory.brought = made.Inputs, made.Brought
	r.warnOfChanges(f, made.Changed)
	if err != nil {
		return r.notRendered(f, err)
	}
	f.run.Objects, f.run.Hooks, f.chart, f.finalized = made.Objects, made.Hooks, made.Chart, made.Finalized
	return keepsWhatVanished(ctx, f)
}

// keepsWhatVanished refuses to remove all installed objects because the add-on now renders to nothing. A user has to
// approve that; until then they are maintained. Hooks alone count as content.
func keepsWhatVanished(ctx context.Context, f *facts) *loop.Outcome {
	if len(f.run.Objects)+len(f.run.Hooks) > 0 {
		return nil
	}
	installed, approval, stop := f.run.Emptied(ctx, rendering.CRDPolicy(f.choice.Version.Template).Remove)
	if stop != nil {
		return stop
	}
	if len(installed) == 0 {
		return nil
	}
	names := make([]string, len(installed))
	for i, entry := range installed {
		names[i] = calls.CutText(entry.Key.String())
	}
	kept := loop.Stall(kubermaticv1.ConditionRendered, kubermaticv1.ReasonNoManifests, fmt.Sprintf(
		"the add-on no longer renders any object for this cluster, and the installed objects stay: annotate the installation with %s: %s to "+
			"remove them: %s", kubermaticv1.AnnotationPruneApproved, approval, text.Names(names, mostNamed)))
	if approval == "" {
		kept.Recheck = clusterRecheck
		kept.Message = "the add-on no longer renders any object for this cluster, and the installed objects stay: the last rollout is not " +
			"complete, and an API server of the cluster does not answer, so it is unknown which objects exist: " + text.Names(names, mostNamed)
	}
	return kept
}

// leftOut names the objects whose finalizers were removed. The last rendering's message stays until the next one.
func (f *facts) leftOut() string {
	said := meta.FindStatusCondition(f.installation.Status.Conditions, kubermaticv1.ConditionRendered)
	switch {
	case len(f.finalized) > 0:
		return "finalizers in manifests are left out, since they would delay removals: " + text.Names(f.finalized, mostNamed)
	case f.finalized == nil && said != nil && said.Reason == kubermaticv1.ReasonRendered:
		return said.Message
	}
	return ""
}

// rendersAgain says, once for each value of annotation reconcile-at, that kept renderings are not used. It is remembered
// separately: objects are often compared before the content that the annotation requests is fetched.
func (m *memory) rendersAgain(reconcileAt string) bool {
	again := m.renderedFor != reconcileAt
	m.renderedFor = reconcileAt
	return again
}

// compareRendering renders a second time if annotation reconcile-at asks for it, and reports differences. The applied
// objects stay.
func (r *Reconciler) compareRendering(ctx context.Context, f *facts, again bool) {
	record := f.run.Record()
	if !again && !f.memory.comparing || record == nil || record.Inputs != f.inputs.Hash {
		return
	}
	request := r.request(f)
	request.Rerender = again
	changed, err := r.renderer.Compare(ctx, request)
	f.memory.comparing = errors.Is(err, render.ErrPending) // the pending rendering wakes the installation, and is kept
	failure, isOfRendering := errors.AsType[*rendering.Error](err)
	switch {
	case err == nil, f.memory.comparing:
	case !isOfRendering, failure.Cause == rendering.CauseCluster: // the next reconciliation asks again
		f.memory.renderedFor = ""
		if isOfRendering {
			r.callFailed(f, kubermaticv1.ConditionRendered, failure.Err)
		}
		fallthrough
	default:
		ctrl.LoggerFrom(ctx).Info("the second rendering, for the comparison, failed", "problem", f.hides().Text(err.Error()))
	}
	r.warnOfChanges(f, changed)
}

// warnOfChanges reports, once for each inputs, that a chart renders random data.
func (r *Reconciler) warnOfChanges(f *facts, changed []string) {
	if len(changed) == 0 || f.memory.changesReported == f.inputs.Hash {
		return
	}
	f.memory.changesReported = f.inputs.Hash
	r.Recorder.Eventf(f.installation, nil, "Warning", kubermaticv1.EventNonDeterministic, "Render",
		"a second rendering of the same inputs gives different content for %s: the first rendering stays in use; make the template depend on "+
			"its inputs only", f.hides().Text(text.Names(changed, mostNamed)))
}

// notRendered says why there are no objects.
func (r *Reconciler) notRendered(f *facts, err error) *loop.Outcome {
	failure, ok := errors.AsType[*rendering.Error](err)
	switch {
	case !ok:
		return failed(err)
	case failure.Cause == rendering.CauseCluster:
		return r.callFailed(f, kubermaticv1.ConditionRendered, failure.Err)
	}
	return renderOutcome(failure)
}

// renderOutcome waits, depending on the cause: errors of the inputs for other inputs, a terminated renderer for its
// delay, too many results of lookup for fewer objects, and a lack of resources for the next attempt.
func renderOutcome(err *rendering.Error) *loop.Outcome {
	var found *survey.FoundError
	var putOff *render.PutOffError
	outcome := loop.Stall(kubermaticv1.ConditionRendered, rendering.Reason(err), err.Error())
	switch {
	case errors.Is(err, render.ErrPending):
		return loop.Wait(kubermaticv1.ConditionRendered, kubermaticv1.ReasonRendering, err.Error(), clusterRecheck)
	case errors.As(err, &putOff):
		outcome.Reason, outcome.Recheck = kubermaticv1.ReasonLimitExceeded, max(time.Until(putOff.Until), time.Second)
	case errors.As(err, &found):
		outcome.Recheck = clusterRecheck
	case err.Cause == rendering.CauseKeeper && !render.Lasting(err):
		outcome.Kind, outcome.Reason = loop.RetryAt, kubermaticv1.ReasonRenderFailed
	}
	return outcome
}

// releaseNameFree refuses a release name that another installation of the cluster already has in the same namespace.
func (r *Reconciler) releaseNameFree(ctx context.Context, f *facts) *loop.Outcome {
	name, spec := releaseName(f), f.installation.Spec
	if name == "" {
		return nil
	}
	having, err := r.installationsOf(ctx, f.cluster.Ref, client.MatchingFields{indexRelease: name})
	if err != nil {
		return failed(err)
	}
	for i := range having {
		other := &having[i]
		if isOlder(other, f.installation) && other.Spec.TargetNamespace == spec.TargetNamespace {
			return installer.ReleaseTaken(other.Name, name, spec.TargetNamespace)
		}
	}
	return nil
}

// isOlder says which of two conflicting installations has priority: the one created first, then the first by name. An
// installation is not older than itself.
func isOlder(a, b *kubermaticv1.AddonInstallation) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.Name < b.Name
}

// allowed refuses objects that an add-on of a Custom catalogue may not have, before anything is recorded or written.
// Applied objects were allowed when they were applied, and stay.
func (r *Reconciler) allowed(_ context.Context, f *facts) *loop.Outcome {
	if f.choice.Core || f.run.Decision.IsRecorded() {
		return nil
	}
	run, err := hooks.Objects(f.run.Hooks)
	if err != nil {
		return failed(err)
	}
	err = rendering.Allowed(f.installation.Spec.TargetNamespace, slices.Concat(f.run.Objects, run), r.Options.Restrictions)
	if err != nil {
		return loop.Stall(kubermaticv1.ConditionRendered, kubermaticv1.ReasonNotAllowed, err.Error())
	}
	return nil
}
