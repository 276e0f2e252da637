package addoninstallation

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/access"
	"github.com/trellis-addons/trellis/pkg/conditions"
	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/installer"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/ownership"
	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/rendering"
	"github.com/trellis-addons/trellis/pkg/resolution"
	"github.com/trellis-addons/trellis/pkg/target"
	"github.com/trellis-addons/trellis/pkg/templatedata"
)

// facts is what a pass has found so far, in groups by the steps that find them. From connect on,
// most of what is found is the installer's (pass); inputs and chart are not.
type facts struct {
	installation *kubermaticv1.AddonInstallation
	// live is the installation on the seed.
	live   *loop.Loop[*kubermaticv1.AddonInstallation]
	memory *memory
	pass   installer.Pass
	clusterFacts
	versionFacts
	valuesFacts
	renderFacts
	accessFacts
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
	// connecting says that this process has not reached the cluster yet, nor failed to.
	connecting bool
	// parting is what becomes of an installation whose Cluster is being deleted.
	parting parting
	// leftBehind says what is left of it in that Cluster, where that is to be reported.
	leftBehind string
}

// versionFacts are those of step resolve.
type versionFacts struct {
	// choice is the version that the installation gets; without one where the step ended the pass.
	choice resolution.Choice
	// selected is what the installation would have by the catalogue; nil before that is known.
	selected *selected
	// withdrawn says that the installed version left the catalogue, left that it is left for
	// another one (choice.Leaves), where that was not said before.
	withdrawn, left string
	pinFacts
	grantFacts
}

// valuesFacts are those of steps values, fetch and compare.
type valuesFacts struct {
	data     templatedata.Data
	values   resolution.Values
	snapshot fetch.Snapshot
	inputs   rendering.Inputs
}

// renderFacts are those of step render.
type renderFacts struct {
	// chart is what the rendering says of a Helm chart; nil for other methods, and where nothing
	// was rendered.
	chart *render.Chart
	// finalized are the objects whose finalizers were left out; nil where nothing was rendered.
	finalized []string
}

// selected are the version that an installation is to have, and a newer one that would fit.
type selected struct{ target, availableUpdate string }

// factsOf begins a pass.
func (r *Reconciler) factsOf(installation *kubermaticv1.AddonInstallation) *facts {
	f := &facts{installation: installation, memory: r.memories.of(installation)}
	f.pass = r.installer.Pass(&f.memory.installed, installation.Namespace, askedOf(installation), r.seed(f))
	f.pass.Hide = func(text string) string { return f.hides().Text(text) }
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
		PruneMany:     annotations[kubermaticv1.AnnotationAllowPrune] == "true",
		SkipHooks:     annotations[kubermaticv1.AnnotationSkipHooks] == "true",
	}
	asked.AdoptManagers, _ = installer.AdoptManagers(annotations) // a step tells of bad ones
	if isRemoved(installation) {
		asked.RemovedSince = installation.DeletionTimestamp.Time
	}
	return asked
}

// seed is what the installer asks of the seed; names of others it learns with the cluster.
func (r *Reconciler) seed(f *facts) installer.Seed {
	return installer.Seed{
		Others: func(ctx context.Context) ([]installer.Other, error) { return r.others(ctx, f) },
		Notify: func(event installer.Event) {
			kind := corev1.EventTypeNormal
			if event.Warning {
				kind = corev1.EventTypeWarning
			}
			r.Recorder.Eventf(f.installation, nil, kind, event.Reason, event.Action, "%s", f.hides().Text(event.Message))
		},
		CallFailed: func(about installer.About, err error) *installer.Stop { return r.callFailed(f, about, err) },
	}
}

// of is the cluster that the installation is for: the found one or, without that, what it asks for.
func (f *facts) of() target.Ref {
	if f.cluster.Name != "" {
		return f.cluster.Ref
	}
	return target.InstalledIn(f.installation)
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
	if stop == nil {
		return nil
	}
	condition, reason, message, cause := conditionOf[stop.About], stop.Reason, stop.Message, stop.Cause
	switch stop.Kind {
	case installer.Retry:
		return loop.RetryAt{Condition: condition, Reason: reason, Message: message, Cause: cause, After: stop.Recheck}
	case installer.RetryUnknown:
		return loop.RetryAt{Condition: condition, Reason: reason, Message: message, Cause: cause, After: stop.Recheck, Unknown: true}
	case installer.Checkpoint:
		return loop.Checkpoint{Condition: condition, Reason: reason, Message: message, AtOnce: true}
	}
	return loop.Waiting{Condition: condition, Reason: reason, Message: message, Cause: cause, Recheck: stop.Recheck}
}

// memory is what one installation's passes have between them. All of it can be lost. The queue
// gives an installation to one worker at a time, so it needs no lock.
type memory struct {
	installed installer.State
	// uid of the installation.
	uid types.UID
	// owner that the state belongs to; with another Cluster in the namespace everything begins
	// anew.
	owner ownership.Owner
	// cutOff is since when the API server of a cluster that is being deleted does not answer; zero
	// while it does.
	cutOff time.Time
	// failures counts failed attempts in a row.
	failures int32
	// brought are groups that count as not served, since the content brings them itself.
	brought rendering.Brought
	// renderedFor and refreshedFor are the values of annotation reconcile-at that a rendering and a
	// refresh of the source were made for.
	renderedFor, refreshedFor string
	// movedFor is the value of annotation reconcile-at for which the artifact was last taken as the
	// source has it, of an installation with addonRef.digest.
	movedFor string
	// changesReported are the inputs whose second rendering gave something else, once that was
	// reported.
	changesReported string
	// comparing: a second rendering, to compare, is under way.
	comparing bool
	// asked is when the first pass found something else asked for than is applied; zero: none did.
	asked time.Time
	// announced is the generation of which a long rollout was announced.
	announced int64
	// awaited is what stands in the way in the user cluster; nil is nothing that one call can see.
	awaited *awaited
	// refusals counts attempts in a row that ended in something that has to be done first.
	refusals int32
	// reported is what was reported last of why the installation is not ready.
	reported conditions.Reported
	// hidden hides values of the platform.
	hidden hidden
	// access is what is known of the credentials for the hub.
	access access.Memory
	// letGo is the turn that waits for no others any more.
	letGo turn
	// written is the last status, until the cache shows it.
	written *written
}

// cacheLag is how long the cache may take to show what was written, by the real clock.
const cacheLag = 10 * time.Second

// written is a status as it was written last.
type written struct {
	resourceVersion string
	status          kubermaticv1.AddonInstallationStatus
	at              time.Time
}

// wrote remembers a status that the cache will show in a moment.
func (m *memory) wrote(installation *kubermaticv1.AddonInstallation) {
	m.written = &written{installation.ResourceVersion, *installation.Status.DeepCopy(), time.Now()}
}

// catchUp gives an object from the cache the status that was written last, until the cache shows
// it. Two passes can follow each other faster than that: the second would compare with the status
// before both, and leave the first one's standing.
func (m *memory) catchUp(installation *kubermaticv1.AddonInstallation) {
	switch {
	case m.written == nil:
	case installation.ResourceVersion == m.written.resourceVersion || time.Since(m.written.at) > cacheLag:
		m.written = nil
	default:
		installation.Status = *m.written.status.DeepCopy()
	}
}

// memories are all installations' memories by name.
type memories struct{ byName sync.Map }

// of gives the memory of an installation; one made anew under an old name starts afresh.
func (m *memories) of(installation *kubermaticv1.AddonInstallation) *memory {
	name := client.ObjectKeyFromObject(installation)
	if before, ok := m.byName.Load(name); ok && before.(*memory).uid == installation.UID {
		return before.(*memory)
	}
	asked := installation.Annotations[kubermaticv1.AnnotationReconcileAt]
	known := &memory{
		uid: installation.UID, installed: installer.NewState(asked), renderedFor: asked, refreshedFor: asked, movedFor: asked,
		reported: reportedOf(installation),
	}
	m.byName.Store(name, known)
	return known
}

// belongTo empties the memory if it is about another Cluster.
func (m *memory) belongTo(owner ownership.Owner) {
	if m.owner != owner {
		*m = memory{
			installed: m.installed.Afresh(), uid: m.uid, owner: owner, renderedFor: m.renderedFor, refreshedFor: m.refreshedFor,
			movedFor: m.movedFor, reported: m.reported,
		}
	}
}
