package addoninstallation

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/installer"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/resolution"
	"github.com/trellis-addons/trellis/pkg/target"
	"github.com/trellis-addons/trellis/pkg/templatedata"
)

// facts is what a pass has found out so far, in groups by the steps that find them. From connect on, what
// is found is the installer's.
type facts struct {
	installation *kubermaticv1.AddonInstallation
	memory       *memory
	installer.Pass
	clusterFacts
	versionFacts
	valuesFacts
	renderFacts
	// retries of the installation, which failed or was refused.
	retries retries
}

// clusterFacts are those of steps find-cluster and load-record.
type clusterFacts struct {
	cluster target.Description
	// identity is the Cluster's, of an installation that is worked on.
	identity *kubermaticv1.ClusterIdentity
	// damaged: there are records, and none can be read.
	damaged bool
}

// versionFacts are those of step resolve.
type versionFacts struct {
	// choice is the version that the installation gets; without one where the step ended the pass.
	choice resolution.Choice
	// selected is what the installation would have by the catalogue; nil before that is known.
	selected *selected
	// withdrawn says that the installed version left the catalogue, left that it is left for another one
	// (choice.Leaves), where that was not said before.
	withdrawn, left string
}

// valuesFacts are those of steps values, fetch and compare.
type valuesFacts struct {
	data     templatedata.Data
	values   resolution.Values
	snapshot fetch.Snapshot
	// wanted is a hash over all that people say, inputs one over all that objects depend on.
	wanted, inputs string
}

// renderFacts are those of step render.
type renderFacts struct {
	// chart is what the rendering says of a Helm chart; nil for other methods, and where nothing was rendered.
	chart *render.Chart
}

// selected are the version that an installation is to have, and a newer one that would fit.
type selected struct{ target, availableUpdate string }

// factsOf begins a pass.
func (r *Reconciler) factsOf(installation *kubermaticv1.AddonInstallation) *facts {
	f := &facts{installation: installation, memory: r.memories.of(installation)}
	f.Pass = r.installer.Pass(&f.memory.State, installation.Namespace, askedOf(installation), r.seed(f))
	f.Refusals = f.memory.refusals
	return f
}

// askedOf is what people ask of an installation besides its revision.
func askedOf(installation *kubermaticv1.AddonInstallation) installer.Asked {
	spec, annotations := installation.Spec, installation.Annotations
	asked := installer.Asked{
		Addon: string(spec.AddonRef.Name), TargetNamespace: spec.TargetNamespace, CreateNamespace: spec.CreateNamespace,
		Adopt:         annotations[kubermaticv1.AnnotationAdopt] == "true",
		Once:          spec.ReconcileStrategy == kubermaticv1.ReconcileOnce,
		ReconcileAt:   annotations[kubermaticv1.AnnotationReconcileAt],
		PruneApproved: annotations[kubermaticv1.AnnotationPruneApproved],
		SkipHooks:     annotations[kubermaticv1.AnnotationSkipHooks] == "true",
	}
	if isRemoved(installation) {
		asked.RemovedSince = installation.DeletionTimestamp.Time
	}
	return asked
}

// seed is what the installer asks of the seed.
func (r *Reconciler) seed(f *facts) installer.Seed {
	namespace := f.installation.Namespace // names are asked for after the pass too
	return installer.Seed{
		Others: func(ctx context.Context) ([]installer.Other, error) { return r.others(ctx, f.installation) },
		NameOf: func(origin types.UID, id string) string { return r.nameOf(namespace, origin, id) },
		Notify: func(event installer.Event) {
			kind := corev1.EventTypeNormal
			if event.Warning {
				kind = corev1.EventTypeWarning
			}
			r.Recorder.Eventf(f.installation, nil, kind, event.Reason, event.Action, "%s", event.Message)
		},
		CallFailed: func(about installer.About, err error) *installer.Stop { return r.callFailed(f, about, err) },
	}
}

// conditionOf is the condition that an answer of the installer is about.
var conditionOf = map[installer.About]string{
	installer.AboutAll:    kubermaticv1.ConditionReady,
	installer.AboutApply:  kubermaticv1.ConditionApplied,
	installer.AboutHealth: kubermaticv1.ConditionHealthy,
	aboutRender:           kubermaticv1.ConditionRendered,
}

// aboutRender is that objects can be made.
const aboutRender installer.About = "Render"

// outcomeOf is an answer of the installer as the outcome of a pass.
func outcomeOf(stop *installer.Stop) loop.Outcome {
	switch {
	case stop == nil:
		return nil
	case stop.Retry:
		return loop.RetryAt{
			Condition: conditionOf[stop.About], Reason: stop.Reason, Message: stop.Message, Unknown: stop.Unknown, After: stop.Recheck,
		}
	case stop.Saved:
		return loop.Checkpoint{Condition: conditionOf[stop.About], Reason: stop.Reason, Message: stop.Message, AtOnce: true}
	}
	return loop.Waiting{Condition: conditionOf[stop.About], Reason: stop.Reason, Message: stop.Message, Recheck: stop.Recheck}
}
