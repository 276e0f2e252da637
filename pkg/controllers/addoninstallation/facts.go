package addoninstallation

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/conditions"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/clusters/access"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/install/installer"
	"github.com/trellis-addons/trellis/pkg/install/rendering"
	"github.com/trellis-addons/trellis/pkg/install/resolution"
	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/values/templatedata"
)

// facts are the findings of a reconciliation, in groups by step. From connect on, most findings are in pass; inputs and
// chart are not.
type facts struct {
	installation *kubermaticv1.AddonInstallation
	// live is the installation on the seed.
	live   *loop.Loop[*kubermaticv1.AddonInstallation]
	memory *memory
	run    installer.Run
	clusterFacts
	versionFacts
	valuesFacts
	renderFacts
	accessFacts
	// retries count failed or refused attempts.
	retries retries
}

// clusterFacts are found by steps find-cluster and load-record.
type clusterFacts struct {
	cluster target.Description
	// identity is the Cluster's, if the installation is reconciled.
	identity *kubermaticv1.ClusterIdentity
	// damaged: there are records, but none is readable.
	damaged bool
	// connecting says that this process has neither reached the cluster yet nor failed to.
	connecting bool
	// deletion is the decision about an installation whose Cluster is being deleted.
	deletion deletion
	// leftBehind is the message about objects left in that Cluster, if it has to be reported.
	leftBehind string
}

// versionFacts are found by step resolve.
type versionFacts struct {
	// choice is the selected version; empty if the step ended the reconciliation.
	choice resolution.Choice
	// selected is the version that the catalogue selects; nil before it is known.
	selected *selected
	// withdrawn and left are messages that are not in the status yet: the installed version left the catalogue; it is
	// replaced by another one (choice.Leaves).
	withdrawn, left string
	pinFacts
	grantFacts
}

// valuesFacts are found by steps values, fetch and compare.
type valuesFacts struct {
	data   templatedata.Data
	values resolution.Values
	// configs are the objects with values that were read; nil before the step.
	configs  []configFact
	snapshot fetch.Snapshot
	inputs   rendering.Inputs
}

// renderFacts are found by step render.
type renderFacts struct {
	// chart is the metadata of a Helm chart; nil for other methods, and if nothing was rendered.
	chart *render.Chart
	// update is a newer version that fits, if the status does not have it yet.
	update string
	// finalized are the objects whose finalizers were removed; nil if nothing was rendered.
	finalized []string
}

// selected are the version to install, and a newer one that fits.
type selected struct{ target, availableUpdate string }

// factsOf begins a reconciliation.
func (r *Reconciler) factsOf(installation *kubermaticv1.AddonInstallation) *facts {
	return r.factsWith(installation, r.memories.of(installation))
}

func (r *Reconciler) factsWith(installation *kubermaticv1.AddonInstallation, known *memory) *facts {
	f := &facts{installation: installation, memory: known}
	f.run = r.installer.NewRun(&f.memory.installed, installation.Namespace, askedOf(installation), r.seed(f))
	f.run.Hide = func(text string) string { return f.hides().Text(text) }
	return f
}

// askedOf are the requests of users that do not change the revision.
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
	asked.AdoptManagers, _ = installer.AdoptManagers(annotations) // step adopts reports errors
	if isRemoved(installation) {
		asked.RemovedSince = installation.DeletionTimestamp.Time
	}
	return asked
}

// seed is the installer's access to the seed; locate adds NameOf.
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
		CallFailed: func(condition string, err error) *loop.Outcome { return r.callFailed(f, condition, err) },
	}
}

// of is the installation's cluster: the found one, otherwise the requested one.
func (f *facts) of() target.Ref {
	if f.cluster.Name != "" {
		return f.cluster.Ref
	}
	return target.InstalledIn(f.installation)
}

// memory is kept between reconciliations of one installation. All of it can be lost. The queue gives an installation to
// one worker at a time, so it needs no lock.
type memory struct {
	installed installer.State
	// uid of the installation.
	uid types.UID
	// owner of this state; with another Cluster in the namespace the memory is emptied.
	owner ownership.Owner
	// cutOff is the time since when the API server of a cluster that is being deleted does not answer; zero while it
	// answers.
	cutOff time.Time
	// failures counts failed attempts in a row.
	failures int32
	// brought are groups that count as not served, since the content contains their CRDs.
	brought rendering.Brought
	// renderedFor and refreshedFor are the values of annotation reconcile-at for which the objects were rendered and
	// the source was refreshed.
	renderedFor, refreshedFor string
	// movedFor is the value of annotation reconcile-at for which the source's current artifact was accepted, for an
	// installation with addonRef.digest.
	movedFor string
	// changesReported are the inputs for which a differing second rendering was reported.
	changesReported string
	// comparing: a second rendering, for comparison, is under way.
	comparing bool
	// asked is when a reconciliation first found a request that is not applied; zero if there is none.
	asked time.Time
	// announced is the generation whose long rollout was announced.
	announced int64
	// awaited is an obstacle in the user cluster; nil if there is none that one call can read.
	awaited *awaited
	// refusals counts consecutive attempts that ended in a problem which has to be solved first.
	refusals int32
	// reported is the last reported reason for not being ready.
	reported conditions.Reported
	// hidden hides values of the platform.
	hidden hidden
	// access has the known state of the credentials for the hub.
	access access.Memory
	// released is the turn that no longer waits for others.
	released order
	// written is the last status, until the cache shows it.
	written *written
}

// cacheLag is the time in which the cache shows a write, by the real clock.
const cacheLag = 10 * time.Second

// written is the last written status.
type written struct {
	resourceVersion string
	status          kubermaticv1.AddonInstallationStatus
	at              time.Time
}

// wrote remembers a status that the cache does not show yet.
func (m *memory) wrote(installation *kubermaticv1.AddonInstallation) {
	m.written = &written{installation.ResourceVersion, *installation.Status.DeepCopy(), time.Now()}
}

// catchUp replaces the status of an object from the cache by the last written one, until the cache shows it. Otherwise
// a quick second reconciliation would compare with the older status, and keep the first one's.
func (m *memory) catchUp(installation *kubermaticv1.AddonInstallation) {
	switch {
	case m.written == nil:
	case installation.ResourceVersion == m.written.resourceVersion || time.Since(m.written.at) > cacheLag:
		m.written = nil
	default:
		installation.Status = *m.written.status.DeepCopy()
	}
}

// memories has the memory of all installations by name.
type memories struct{ byName sync.Map }

// of returns the memory of an installation; one that was recreated under its old name gets a new memory.
func (m *memories) of(installation *kubermaticv1.AddonInstallation) *memory {
	name := client.ObjectKeyFromObject(installation)
	if before, ok := m.byName.Load(name); ok && before.(*memory).uid == installation.UID {
		return before.(*memory)
	}
	known := newMemory(installation)
	m.byName.Store(name, known)
	return known
}

// newMemory is that of an installation of which this process knows nothing.
func newMemory(installation *kubermaticv1.AddonInstallation) *memory {
	asked := installation.Annotations[kubermaticv1.AnnotationReconcileAt]
	return &memory{
		uid: installation.UID, installed: installer.NewState(asked), renderedFor: asked, refreshedFor: asked, movedFor: asked,
		reported: reportedOf(installation),
	}
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
