package addoninstallation

import (
	"context"
	"errors"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/cluster"
	"github.com/trellis-addons/trellis/pkg/fairqueue"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/ownership"
	"github.com/trellis-addons/trellis/pkg/remote"
	"github.com/trellis-addons/trellis/pkg/revision"
)

const (
	// saveTimeout bounds one write of status or records on the seed.
	saveTimeout = 30 * time.Second
	// overdueRecheck is when an installation that waits for something else is looked at again after its pass took too long.
	overdueRecheck = time.Minute
)

type outerKey struct{}

// begin gives the context of a pass, which ends when the pass has taken too long. What it did by then is saved all the same: within
// it, saving gives a context that does not end with it.
func (r *Reconciler) begin(ctx context.Context, request ctrl.Request) (within context.Context, end func()) {
	within = context.WithValue(ctx, outerKey{}, ctx)
	return r.queue.Begin(remote.Within(within, "one pass", remote.PassTotals), request)
}

// saving is the context for reading and writing what the seed keeps of an installation.
func saving(within context.Context) (context.Context, context.CancelFunc) {
	outer, known := within.Value(outerKey{}).(context.Context)
	if !known {
		outer = within
	}
	return context.WithTimeout(outer, saveTimeout)
}

// overdue tells of a pass that was ended: what failed, or waits, then does so since the cluster was too slow. That only an edit helps
// is told all the same, and is not looked at again at once.
func (f *facts) overdue(within context.Context, outcome loop.Outcome) loop.Outcome {
	var late *fairqueue.OverdueError
	if !errors.As(context.Cause(within), &late) {
		return outcome
	}
	f.memory.watched = time.Time{}
	switch o := outcome.(type) {
	case loop.RetryAt:
		if o.After > 0 { // it waits for something else
			return outcome
		}
		return f.tooSlow(late, outcome)
	case loop.Waiting, loop.Checkpoint:
		return f.tooSlow(late, outcome)
	case loop.Stalled:
		o.Recheck = max(o.Recheck, overdueRecheck)
		return o
	}
	return outcome
}

// tooSlow is what to tell of a pass that was ended: that its cluster was too slow, if the pass came that far.
func (f *facts) tooSlow(late *fairqueue.OverdueError, outcome loop.Outcome) loop.Outcome {
	if f.connection == nil {
		return outcome
	}
	slow := &cluster.NotConnectedError{
		Cluster: f.cluster.Name, Reason: kubermaticv1.ReasonClusterUnreachable,
		Message: fmt.Sprintf("the API server did not answer within %s all that is asked of it for this installation", late.After),
	}
	return loop.RetryAt{
		Condition: kubermaticv1.ConditionReady, Reason: slow.Reason, Message: slow.Error(), Unknown: true,
	}
}

// savedRecords read and write records in a context of their own: they are the seed's, and must not suffer from a user cluster that
// was too slow.
type savedRecords struct{ records Records }

// Clusters implements Records.
func (s savedRecords) Clusters(ctx context.Context, namespace, installation string) ([]kubermaticv1.ClusterIdentity, error) {
	ctx, cancel := saving(ctx)
	defer cancel()
	return s.records.Clusters(ctx, namespace, installation)
}

// Load implements Records.
func (s savedRecords) Load(ctx context.Context, namespace string, owner ownership.Owner) (*revision.Record, error) {
	ctx, cancel := saving(ctx)
	defer cancel()
	return s.records.Load(ctx, namespace, owner)
}

// LoadFirst implements Records.
func (s savedRecords) LoadFirst(ctx context.Context, namespace string, owner ownership.Owner) (*revision.Record, error) {
	ctx, cancel := saving(ctx)
	defer cancel()
	return s.records.LoadFirst(ctx, namespace, owner)
}

// LoadRevision implements Records.
func (s savedRecords) LoadRevision(ctx context.Context, namespace string, owner ownership.Owner, revision int) (*revision.Record, error) {
	ctx, cancel := saving(ctx)
	defer cancel()
	return s.records.LoadRevision(ctx, namespace, owner, revision)
}

// SaveIntent implements Records.
func (s savedRecords) SaveIntent(ctx context.Context, namespace string, record *revision.Record) error {
	ctx, cancel := saving(ctx)
	defer cancel()
	return s.records.SaveIntent(ctx, namespace, record)
}

// SaveApplied implements Records.
func (s savedRecords) SaveApplied(ctx context.Context, namespace string, record *revision.Record) error {
	ctx, cancel := saving(ctx)
	defer cancel()
	return s.records.SaveApplied(ctx, namespace, record)
}

// Trim implements Records.
func (s savedRecords) Trim(ctx context.Context, namespace string, owner ownership.Owner, keep ...int) error {
	ctx, cancel := saving(ctx)
	defer cancel()
	return s.records.Trim(ctx, namespace, owner, keep...)
}

// Forget implements Records.
func (s savedRecords) Forget(ctx context.Context, namespace string, owner ownership.Owner) error {
	ctx, cancel := saving(ctx)
	defer cancel()
	return s.records.Forget(ctx, namespace, owner)
}

// Reown implements Records.
func (s savedRecords) Reown(ctx context.Context, namespace string, owner ownership.Owner, now kubermaticv1.ClusterIdentity) error {
	ctx, cancel := saving(ctx)
	defer cancel()
	return s.records.Reown(ctx, namespace, owner, now)
}
