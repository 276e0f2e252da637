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
	"github.com/trellis-addons/trellis/pkg/calls"
	"github.com/trellis-addons/trellis/pkg/hooks"
	"github.com/trellis-addons/trellis/pkg/installer"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/rendering"
	"github.com/trellis-addons/trellis/pkg/survey"
	"github.com/trellis-addons/trellis/pkg/text"
)

// mostNamed is how many objects an event names.
const mostNamed = 5

// request is what the objects of the installation depend on.
func (r *Reconciler) request(f *facts) rendering.Request {
	return rendering.Request{
		Installation: f.installation, Choice: f.choice, Values: f.values, Data: f.data, Content: f.snapshot,
		Cluster: f.cluster, Owner: f.pass.Owner, Mapper: f.pass.Connection.Mapper, APIVersions: f.pass.Connection.APIVersions, Installed: &f.pass,
		Inputs: f.inputs, Brought: f.memory.brought, Wake: r.waker(f.installation),
	}
}

// render makes objects of content and values: those on record for an intent with these inputs,
// those that are kept, or new ones.
func (r *Reconciler) render(ctx context.Context, f *facts) loop.Outcome {
	anew := f.memory.rendersAnew(f.pass.Asked.ReconcileAt)
	switch {
	case f.pass.Decision.IsApplied(), f.pass.Decision.IsUnderWay():
		r.compareRendering(ctx, f, anew)
		return nil
	case f.pass.Decision.IsBegun():
		return outcomeOf(f.pass.ReadIntent())
	}
	if outcome := r.releaseNameFree(ctx, f); outcome != nil {
		return outcome
	}
	if stop := f.pass.CheckRelease(ctx, releaseName(f)); stop != nil {
		return outcomeOf(stop)
	}
	if f.pass.Decision.FromRecord {
		return outcomeOf(f.pass.ReadIntent())
	}
	request := r.request(f)
	request.Anew, request.Unasked = anew, f.pass.Decision.Unasked && f.pass.Foreign == nil
	made, err := r.renderer.Render(ctx, request)
	f.inputs, f.memory.brought = made.Inputs, made.Brought
	r.warnOfChanges(f, made.Changed)
	if err != nil {
		return r.notRendered(f, err)
	}
	f.pass.Objects, f.pass.Hooks, f.chart, f.finalized = made.Objects, made.Hooks, made.Chart, made.Finalized
	return keepsWhatVanished(ctx, f)
}

// keepsWhatVanished refuses to let everything go that is installed because the add-on renders to
// nothing now. Somebody who wants that approves it, and until then it is maintained. Hooks alone are something.
func keepsWhatVanished(ctx context.Context, f *facts) loop.Outcome {
	if len(f.pass.Objects)+len(f.pass.Hooks) > 0 {
		return nil
	}
	installed, approval, stop := f.pass.Emptied(ctx, rendering.CRDPolicy(f.choice.Version.Template).Remove)
	if stop != nil {
		return outcomeOf(stop)
	}
	if len(installed) == 0 {
		return nil
	}
	names := make([]string, len(installed))
	for i, entry := range installed {
		names[i] = calls.CutText(entry.Key.String())
	}
	kept := loop.Stalled{
		Condition: kubermaticv1.ConditionRendered, Reason: kubermaticv1.ReasonNoManifests,
		Message: fmt.Sprintf("the add-on renders to nothing for this cluster any more, and what is installed stays: annotate the installation "+
			"with %s: %s to let it go: %s", kubermaticv1.AnnotationPruneApproved, approval, text.Names(names, mostNamed)),
	}
	if approval == "" {
		kept.Recheck = clusterRecheck
		kept.Message = "the add-on renders to nothing for this cluster any more, and what is installed stays: its last rollout did not end, " +
			"and whether the cluster has all of that can't be told while an API server there does not answer: " + text.Names(names, mostNamed)
	}
	return kept
}

// leftOut says whose finalizers were left out. What the last rendering said stays until the next one.
func (f *facts) leftOut() string {
	said := meta.FindStatusCondition(f.installation.Status.Conditions, kubermaticv1.ConditionRendered)
	switch {
	case len(f.finalized) > 0:
		return "finalizers in manifests are left out, since they would hold removals: " + text.Names(f.finalized, mostNamed)
	case f.finalized == nil && said != nil && said.Reason == kubermaticv1.ReasonRendered:
		return said.Message
	}
	return ""
}

// rendersAnew says once for each value of annotation reconcile-at that what is kept does not count.
// It has a memory of its own: the objects are often compared before the content is fetched that the
// annotation asks for.
func (m *memory) rendersAnew(reconcileAt string) bool {
	anew := m.renderedFor != reconcileAt
	m.renderedFor = reconcileAt
	return anew
}

// compareRendering renders once more, where somebody asked for that, and says where something else
// comes out. What is applied stays as it is.
func (r *Reconciler) compareRendering(ctx context.Context, f *facts, anew bool) {
	record := f.pass.Record()
	if !anew && !f.memory.comparing || record == nil || record.Inputs != f.inputs.Hash {
		return
	}
	request := r.request(f)
	request.Anew = anew
	changed, err := r.renderer.Compare(ctx, request)
	f.memory.comparing = errors.Is(err, render.ErrPending) // it wakes the installation, and is kept
	failure, isOfRendering := errors.AsType[*rendering.Error](err)
	switch {
	case err == nil, f.memory.comparing:
	case !isOfRendering, failure.Cause == rendering.CauseCluster: // the next pass asks again
		f.memory.renderedFor = ""
		if isOfRendering {
			r.callFailed(f, aboutRender, failure.Err)
		}
		fallthrough
	default:
		ctrl.LoggerFrom(ctx).Info("rendering once more, to compare, did not work", "problem", f.hides().Text(err.Error()))
	}
	r.warnOfChanges(f, changed)
}

// warnOfChanges says, once for each inputs, that a chart makes something up.
func (r *Reconciler) warnOfChanges(f *facts, changed []string) {
	if len(changed) == 0 || f.memory.changesReported == f.inputs.Hash {
		return
	}
	f.memory.changesReported = f.inputs.Hash
	r.Recorder.Eventf(f.installation, nil, "Warning", kubermaticv1.EventNonDeterministic, "Render",
		"a second rendering of equal inputs gives something else for %s: what was rendered first stays; make the template depend on "+
			"its inputs only", f.hides().Text(text.Names(changed, mostNamed)))
}

// notRendered says why there are no objects.
func (r *Reconciler) notRendered(f *facts, err error) loop.Outcome {
	failure, ok := errors.AsType[*rendering.Error](err)
	switch {
	case !ok:
		return failed(err)
	case failure.Cause == rendering.CauseCluster:
		return outcomeOf(r.callFailed(f, aboutRender, failure.Err))
	}
	return renderOutcome(failure)
}

// renderOutcome: what comes with the inputs waits for other inputs, what ended a renderer for its
// time, what function lookup finds for fewer objects, and what the machine lacked for the next try.
func renderOutcome(err *rendering.Error) loop.Outcome {
	var found *survey.FoundError
	var putOff *render.PutOffError
	stalled := loop.Stalled{Condition: kubermaticv1.ConditionRendered, Reason: rendering.Reason(err), Message: err.Error()}
	switch {
	case errors.Is(err, render.ErrPending):
		return loop.Waiting{
			Condition: kubermaticv1.ConditionRendered, Reason: kubermaticv1.ReasonRendering, Message: err.Error(), Recheck: clusterRecheck,
		}
	case errors.As(err, &putOff):
		stalled.Reason, stalled.Recheck = kubermaticv1.ReasonLimitExceeded, max(time.Until(putOff.Until), time.Second)
	case errors.As(err, &found):
		stalled.Recheck = clusterRecheck
	case err.Cause == rendering.CauseKeeper && !render.Lasting(err):
		return loop.RetryAt{Condition: kubermaticv1.ConditionRendered, Reason: kubermaticv1.ReasonRenderFailed, Message: err.Error()}
	}
	return stalled
}

// releaseNameFree refuses a release name that another installation of the cluster has in the same
// namespace already.
func (r *Reconciler) releaseNameFree(ctx context.Context, f *facts) loop.Outcome {
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
			return outcomeOf(installer.ReleaseTaken(other.Name, name, spec.TargetNamespace))
		}
	}
	return nil
}

// isOlder says which of two installations that want the same has it: the one made first, then the
// first by name. Of one installation with itself it says no.
func isOlder(a, b *kubermaticv1.AddonInstallation) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.Name < b.Name
}

// allowed refuses, before anything is recorded or written, what an add-on of a Custom catalogue may
// not have. What is applied already was allowed when it was, and stays.
func (r *Reconciler) allowed(_ context.Context, f *facts) loop.Outcome {
	if f.choice.Core || f.pass.Decision.IsRecorded() {
		return nil
	}
	run, err := hooks.Objects(f.pass.Hooks)
	if err != nil {
		return failed(err)
	}
	err = rendering.Allowed(f.installation.Spec.TargetNamespace, slices.Concat(f.pass.Objects, run), r.Options.Restrictions)
	if err != nil {
		return loop.Stalled{Condition: kubermaticv1.ConditionRendered, Reason: kubermaticv1.ReasonNotAllowed, Message: err.Error()}
	}
	return nil
}
