package clusterupgrade

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/fleet/upgrade"
)

// report is the last decision about one Cluster. Only reconciliations of that Cluster use it.
type report struct {
	// of is the UID of that Cluster, object that of its available catalogue.
	of, object types.UID
	before     upgrade.Before
	message    string
	// isWritten says that the catalogue has it.
	isWritten bool
}

// reports by cluster, without UID. Stages are separate, since metrics read them at any time.
type reports struct {
	mutex     sync.Mutex
	byCluster map[target.Ref]*report
	stages    map[target.Ref]string
}

func (r *reports) forCluster(ref target.Ref) *report {
	uid := ref.UID
	ref.UID = ""
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.byCluster == nil {
		r.byCluster, r.stages = map[target.Ref]*report{}, map[target.Ref]string{}
	}
	if r.byCluster[ref] == nil || r.byCluster[ref].of != uid {
		r.byCluster[ref] = &report{of: uid}
	}
	return r.byCluster[ref]
}

func (r *reports) note(ref target.Ref, stage string) {
	ref.UID = ""
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.stages[ref] = stage; stage == "" {
		delete(r.stages, ref)
	}
}

func (r *reports) forget(ref target.Ref) {
	ref.UID, ref.Kind = "", target.KindClusterAPI
	r.mutex.Lock()
	defer r.mutex.Unlock()
	delete(r.byCluster, ref)
	delete(r.stages, ref)
}

// find ends the reconciliation for a cluster that is no Cluster of Cluster API, or that may not be written to.
func (r *Reconciler) find(ctx context.Context, f *facts) *loop.Outcome {
	found, err := r.Finder.Find(ctx, f.asked)
	if _, isUnknown := errors.AsType[*cluster.UnknownError](err); isUnknown {
		r.reports.forget(f.asked)
		return &loop.Outcome{Kind: loop.Done}
	}
	switch {
	case err != nil:
		return failed(err)
	case found.Kind != target.KindClusterAPI:
		return &loop.Outcome{Kind: loop.Done}
	case !cluster.BelongsTo(found, r.Options.WorkerName):
		return &loop.Outcome{Kind: loop.NotMine}
	case found.Deleted:
		r.reports.forget(f.asked)
		return &loop.Outcome{Kind: loop.Done}
	case found.Paused:
		return &loop.Outcome{Kind: loop.Done}
	}
	f.cluster, f.report = found, r.reports.forCluster(found.Ref)
	f.observed = observedOf(found)
	return r.readReport(ctx, f)
}

// observedOf is the state of a Cluster, without its gates.
func observedOf(found target.Description) upgrade.ClusterState {
	seen := upgrade.ClusterState{Off: found.Annotations[v1.AnnotationUpgradeHold] == v1.UpgradeHoldOff}
	of := found.Upgrade
	if of == nil {
		return seen
	}
	seen.Topology, seen.Wanted, seen.Versions, seen.Asked = true, of.Wanted, of.Versions, of.Asked
	seen.WorkersFirst, seen.Hook = of.WorkersFirst, of.Hook
	if !isPlanned(of) {
		seen.Awaits = "the steps of the upgrade, which Cluster API has not planned yet"
	}
	switch {
	case of.Held:
		seen.Workers = upgrade.WorkersHeld
	case of.HasWorkers:
		seen.Workers = upgrade.WorkersFree
	}
	return seen
}

// isPlanned says whether the next versions are known. For an upgrade over several minors, which goes through those
// between, Cluster API publishes them a moment after the request.
func isPlanned(of *target.Upgrade) bool {
	if len(of.Versions) == 0 || len(of.Plan) == 0 || !of.IsPending() {
		return true
	}
	now, isKnown := catalogue.PlatformVersion(of.Versions[0])
	next, isKnownToo := catalogue.PlatformVersion(of.Plan[0])
	return !isKnown || !isKnownToo || now.Major() != next.Major() || next.Minor() <= now.Minor()+1
}

// readReport reads the condition that an earlier process wrote, once for each catalogue. There may be none yet.
func (r *Reconciler) readReport(ctx context.Context, f *facts) *loop.Outcome {
	if f.report.object != "" {
		return nil
	}
	live := &v1.AddonCatalogue{}
	err := r.Reader.Get(ctx, cluster.AvailableOf(f.cluster.Ref), live)
	if client.IgnoreNotFound(err) != nil {
		return failed(fmt.Errorf("reading the available catalogue of cluster %q: %w", f.cluster.Name, err))
	}
	if err != nil {
		return nil
	}
	f.report.object = live.UID
	before := meta.FindStatusCondition(live.Status.Conditions, v1.ConditionUpgradeHeld)
	f.report.isWritten = before != nil || f.report.before.Reason == ""
	if before != nil {
		f.report.before, f.report.message = upgrade.Before{Reason: before.Reason, Since: before.LastTransitionTime.Time}, before.Message
	}
	return nil
}
