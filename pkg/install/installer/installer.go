package installer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/backoff"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/base/lru"
	"github.com/trellis-addons/trellis/pkg/base/times"
	"github.com/trellis-addons/trellis/pkg/catalogue/health"
	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/install/apply"
	"github.com/trellis-addons/trellis/pkg/install/helmrelease"
	"github.com/trellis-addons/trellis/pkg/install/hooks"
	"github.com/trellis-addons/trellis/pkg/install/pullsecret"
	"github.com/trellis-addons/trellis/pkg/install/revision"
	"github.com/trellis-addons/trellis/pkg/install/survey"
)

// RecordWriter writes release records on the seed.
type RecordWriter interface {
	SaveIntent(ctx context.Context, namespace string, record *revision.Record) error
	SaveApplied(ctx context.Context, namespace string, record *revision.Record) error
	Trim(ctx context.Context, namespace string, owner ownership.Owner, keep ...int) error
	Forget(ctx context.Context, namespace string, owner ownership.Owner) error
	Reown(ctx context.Context, namespace string, owner ownership.Owner, now metav1.OwnerReference) error
}

// RecordReader reads release records: the newest, or one revision.
type RecordReader interface {
	Load(ctx context.Context, namespace string, owner ownership.Owner) (*revision.Record, error)
	LoadFirst(ctx context.Context, namespace string, owner ownership.Owner) (*revision.Record, error)
	LoadRevision(ctx context.Context, namespace string, owner ownership.Owner, revision int) (*revision.Record, error)
}

// Installer applies revisions to targets. One instance serves all installations of a seed: those of one user cluster
// share its lists.
type Installer struct {
	Reads  RecordReader
	Writes RecordWriter
	// Interval is the time between two comparisons of an installation's objects with its record.
	Interval time.Duration
	// Pull manages the platform's pull Secret and its copies; nil: there is none.
	Pull *pullsecret.Records
	// Rules evaluate the health rules of versions; nil: no version has any.
	Rules *health.Programs
	// Now returns the time; nil: the real clock.
	Now func() time.Time

	views     lru.Cache[types.UID, *view]
	handovers handovers
}

// Run is one reconciliation of one installation: the recorded revision, and its target. The caller sets the requests
// and, step by step, other facts; steps store their findings in it.
type Run struct {
	installer *Installer
	State     *State

	// Namespace is the records' namespace on the seed.
	Namespace string
	// Now is the time of the reconciliation.
	Now   time.Time
	Asked Asked
	// Cluster and Owner are set once the cluster is found, Connection once it is connected.
	Cluster target.Ref
	// ClusterOwner is the Cluster as owner of objects that are deleted with it.
	ClusterOwner metav1.OwnerReference
	Owner        ownership.Owner
	Connection   *cluster.Connection
	// Decision is the action of the reconciliation (revision.Decide).
	Decision revision.Decision
	// Hide removes values of the platform from text for the record, which may be read when they are no longer known
	// (ADR 72).
	Hide func(text string) string
	// Objects and Hooks of the revision, as the user cluster should have them.
	Objects []*unstructured.Unstructured
	Hooks   []hooks.Hook
	// Keeping are Secrets that the installation has in addition to its objects.
	Secrets []ManagedSecret
	// Refusals counts the previous consecutive reconciliations that ended in a problem which a user has to solve.
	Refusals int32
	Seed     Seed

	// Foreign is the foreign Helm release that this one follows; extras are its objects that are not ours.
	Foreign  *helmrelease.Foreign
	extras   ownership.Inventory
	Progress apply.Progress
	// leaves are objects that a removal leaves to siblings.
	leaves ownership.Inventory
	// copiesDue is the time until copies of the pull Secret are deleted if the original does not return; 0: they are
	// not deleted.
	copiesDue time.Duration
	// Applied is the record of a rollout that this reconciliation completed, at that time; nil if none.
	Applied *revision.Record
	// saved is the complete record as this reconciliation wrote it.
	saved *revision.Record
	// Release is the Helm release of the record; one without a name if there is none; nil if this reconciliation does
	// not report it.
	Release *helmrelease.Release
	// Repaired are objects that were restored. Compared are the other results of comparing all objects with the record;
	// nil if the comparison was not completed.
	Repaired []ownership.Key
	Compared *Comparison
	// Health of the objects; nil if they were not read.
	Health *survey.Health
	// Misbehaved has notes about objects for which the API server gave impossible answers.
	Misbehaved []calls.Note
	// Taken names each manager whose fields were removed because the API server refuses them together with the
	// add-on's.
	Taken []calls.Note
	// Shared has messages about objects that this reconciliation began or ceased to share.
	Shared []string
	// Obstacle is in the user cluster, and one call can read it.
	Obstacle *apply.Obstacle
	// HookAttempts is how many attempts of a hook failed in a row, and HookRetry when the next begins; 0: none failed.
	HookAttempts int32
	HookRetry    time.Time
}

// Comparison has the objects that differ from the record and stay so: Fights because another client keeps changing
// them, Drifted because repairs are off, Newer because their content is ours and newer than the record.
type Comparison struct{ Fights, Drifted, Newer []ownership.Key }

// Asked are the requests of users that do not change the revision.
type Asked struct {
	// Addon is its name in the catalogue.
	Addon           string
	TargetNamespace string
	CreateNamespace bool
	// Adopt allows adoption of existing objects and a Helm release.
	Adopt bool
	// AdoptManagers are field managers whose fields of adopted objects count as those of a tool; none without Adopt.
	AdoptManagers []string
	// Once keeps a revision unchanged after it was healthy.
	Once bool
	// ReconcileAt requests a comparison of everything when it changes.
	ReconcileAt string
	// PruneApproved allows one prune of many objects (removal.Approval).
	PruneApproved string
	// PruneMany allows prunes of many objects, except for those that contain other data.
	PruneMany bool
	// SkipHooks removes without hooks.
	SkipHooks bool
	// RemovedSince is when the removal was requested; zero if it was not. ClusterGoes: the cluster is being deleted.
	RemovedSince time.Time
	ClusterGoes  bool
}

// IsRemoved says whether the installation has to be removed.
func (a Asked) IsRemoved() bool { return !a.RemovedSince.IsZero() }

// Other is another installation of the cluster.
type Other struct {
	Name, Addon, TargetNamespace string
	// Deleted: it is being deleted. Leaving: it removes its objects too. Elder: it was created before this one.
	Deleted, Leaving, Elder bool
	// Idle: nothing of it was applied, by its status.
	Idle bool
	// Fingerprint changes if its record may have changed.
	Fingerprint string
}

// Event reports a change of the installation.
type Event struct {
	Warning                 bool
	Reason, Action, Message string
}

// Seed provides the seed's data and actions to the installer.
type Seed struct {
	// Others are the other installations of the cluster.
	Others func(ctx context.Context) ([]Other, error)
	// NameOf is the name of the installation with an ID (ownership.Owner.ID), by its cluster's origin; "" if it no
	// longer exists. It is also called after the reconciliation.
	NameOf func(origin types.UID, id string) string
	Notify func(Event)
	// CallFailed receives each failed call to the user cluster, and returns its outcome for a condition.
	CallFailed func(condition string, err error) *loop.Outcome
}

// Failed is the outcome of a failed call on the seed, or of a record that the user cluster made larger than its objects
// explain; nil without an error. It waits if another installation is being removed.
func Failed(err error) *loop.Outcome {
	if err == nil {
		return nil
	}
	if stop := handover(err); stop != nil {
		return stop
	}
	if grown, ok := errors.AsType[*revision.GrowthError](err); ok {
		return &loop.Outcome{
			Kind: loop.RetryAt, Unknown: true, Condition: v1.ConditionReady, Reason: v1.ReasonClusterMisbehaves, Message: grown.Error(),
		}
	}
	if full, ok := errors.AsType[*revision.BudgetError](err); ok {
		return waitToApply(v1.ReasonLimitExceeded, full.Error(), SlowestRetry)
	}
	return &loop.Outcome{Kind: loop.RetryAt, Condition: v1.ConditionReady, Reason: v1.ReasonFailed, Message: err.Error()}
}

// waitToApply waits for a condition before the objects can be applied.
func waitToApply(reason, message string, recheck time.Duration) *loop.Outcome {
	return loop.Wait(v1.ConditionApplied, reason, message, recheck)
}

// waitForNotes is waitToApply for the subject of the first note.
func waitForNotes(notes []calls.Note, recheck time.Duration) *loop.Outcome {
	wait := waitToApply(notes[0].Reason, TextOf(notes), recheck)
	wait.Cause = notes[0].Cause
	return wait
}

// waitToRemove waits for a condition before a removal can continue.
func waitToRemove(message string) *loop.Outcome {
	return loop.Wait(v1.ConditionReady, v1.ReasonRemoving, message, removalRecheck)
}

const (
	// RefusedRecheck is the interval at which objects that the user cluster refused are retried.
	RefusedRecheck = time.Minute
	// SlowestRetry is the longest wait between two attempts of a persistent failure.
	SlowestRetry = 5 * time.Minute
	// maxNamed is how many objects an event names.
	maxNamed = 5
)

// NewRun begins a reconciliation of an installation.
func (i *Installer) NewRun(state *State, namespace string, asked Asked, seed Seed) Run {
	shown := func(text string) string { return text }
	return Run{installer: i, State: state, Namespace: namespace, Asked: asked, Seed: seed, Hide: shown}
}

// Record is the newest record, nil before the first intent.
func (p *Run) Record() *revision.Record { return p.State.Record }

// stamp is the reconciliation's time at the precision of stored times: otherwise a write now would differ from that of
// a restarted process, which reads the record.
func (p *Run) stamp() metav1.Time { return metav1.Time{Time: p.Now}.Rfc3339Copy() }

// Connect sets the target.
func (p *Run) Connect(connection *cluster.Connection) {
	p.Connection = connection
	p.State.connect(connection.UserCluster)
	if p.State.Watched.IsZero() || times.IsAhead(p.State.Watched, p.Now) {
		p.State.Watched = p.Now
	}
}

func (p *Run) target() calls.Target {
	return calls.Target{
		Metadata: p.Connection.Metadata, Dynamic: p.Connection.Dynamic, Mapper: p.Connection.Mapper, Served: p.Connection,
	}
}

// RenewRollout drops a rollout that began with other adoption settings: it would still refuse objects that may be
// adopted now.
func (p *Run) RenewRollout() {
	if p.State.adopting != p.Asked.adoption() {
		p.State.rollout = nil
	}
}

// IsRollingOut says whether a rollout is under way in this process.
func (p *Run) IsRollingOut() bool { return p.State.rollout != nil }

// ObstacleState is the current state of an obstacle; it takes one call.
func (p *Run) ObstacleState(ctx context.Context, obstacle apply.Obstacle) (string, error) {
	return obstacle.State(ctx, p.target())
}

// ForeignObjects are the objects of the followed Helm release, of the chosen kinds.
func (p *Run) ForeignObjects(
	ctx context.Context, chosen func(kind string) bool, limits survey.FoundLimits,
) ([]*unstructured.Unstructured, error) {
	if p.Foreign == nil {
		return nil, nil
	}
	claimed := slices.DeleteFunc(slices.Clone(p.Foreign.Objects), func(entry ownership.Entry) bool { return !chosen(entry.Kind) })
	return survey.OfRelease(ctx, p.target(), claimed, p.Foreign.Marks(), limits)
}

// NextSurvey is the time until the objects are compared with the record, a Lease or a running Job is read, or copies of
// a pull Secret are deleted.
func (p *Run) NextSurvey() time.Duration {
	next := p.State.nextSurvey.Sub(p.Now)
	if by := p.lease(); by != nil {
		next = min(next, p.State.beat.Next(p.Now, by.staleAfter))
	}
	if p.State.activeRuns > 0 {
		next = min(next, backoff.After(p.State.activeRuns, firstRecheck, SlowestRecheck))
	}
	if p.copiesDue > 0 {
		next = min(next, p.copiesDue)
	}
	return max(next, firstRecheck)
}

func (p *Run) nameOf() func(id string) string {
	name, origin := p.Seed.NameOf, p.Owner.ClusterUID
	return func(id string) string { return name(origin, id) }
}

func (p *Run) remoteFailed(condition string, err error) *loop.Outcome {
	return p.Seed.CallFailed(condition, err)
}

func (p *Run) report(event Event, format string, about ...any) {
	event.Message = fmt.Sprintf(format, about...)
	p.Seed.Notify(event)
}
