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
	"github.com/trellis-addons/trellis/pkg/apply"
	"github.com/trellis-addons/trellis/pkg/backoff"
	"github.com/trellis-addons/trellis/pkg/calls"
	"github.com/trellis-addons/trellis/pkg/cluster"
	"github.com/trellis-addons/trellis/pkg/health"
	"github.com/trellis-addons/trellis/pkg/helmrelease"
	"github.com/trellis-addons/trellis/pkg/hooks"
	"github.com/trellis-addons/trellis/pkg/lru"
	"github.com/trellis-addons/trellis/pkg/ownership"
	"github.com/trellis-addons/trellis/pkg/pullsecret"
	"github.com/trellis-addons/trellis/pkg/revision"
	"github.com/trellis-addons/trellis/pkg/survey"
	"github.com/trellis-addons/trellis/pkg/target"
	"github.com/trellis-addons/trellis/pkg/times"
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

// Installer puts revisions onto targets. One serves all installations of a seed: those of one user
// cluster share what was listed there.
type Installer struct {
	Reads  RecordReader
	Writes RecordWriter
	// Interval is the time between two comparisons of an installation's objects with its record.
	Interval time.Duration
	// Pull knows the platform's pull Secret and its copies; nil: there is none.
	Pull *pullsecret.Records
	// Rules are those of versions about their health; nil: none has any.
	Rules *health.Programs
	// Now is the time; nil: that of the real clock.
	Now func() time.Time

	views     lru.Cache[types.UID, *view]
	handovers handovers
}

// Pass is one pass over one installation: the revision on record, and its target. The caller says
// what is asked and, step by step, what else is known; steps leave behind what they found.
type Pass struct {
	installer *Installer
	State     *State

	// Namespace on the seed has the records.
	Namespace string
	// Now is the time of the pass.
	Now   time.Time
	Asked Asked
	// Cluster and Owner are known once the cluster was found; Connection once it is connected.
	Cluster target.Ref
	// ClusterOwner is the Cluster as owner of what ends with it.
	ClusterOwner metav1.OwnerReference
	Owner        ownership.Owner
	Connection   *cluster.Connection
	// Decision is what the pass does (revision.Decide).
	Decision revision.Decision
	// Hide takes values of the platform out of words that are kept on record, after which nobody may
	// know them any more (ADR 72).
	Hide func(text string) string
	// Objects and Hooks of the revision, as they are to stand in the user cluster.
	Objects []*unstructured.Unstructured
	Hooks   []hooks.Hook
	// Keeping are Secrets that the installation has besides its objects.
	Keeping []Kept
	// Refusals counts the passes before this one, in a row, that ended in something that somebody
	// has to do first.
	Refusals int32
	Seed     Seed

	// Foreign is somebody's Helm release that this one follows; extras are its objects that are not
	// among ours.
	Foreign  *helmrelease.Foreign
	extras   ownership.Inventory
	Progress apply.Progress
	// leaves are objects that a removal leaves to siblings.
	leaves ownership.Inventory
	// copiesDue is when copies of the pull Secret go, if the original does not come back; 0: they don't.
	copiesDue time.Duration
	// Applied is the record of a rollout that the pass saw to its end, as it was then; nil for
	// none.
	Applied *revision.Record
	// saved is the record as this pass wrote it, whole.
	saved *revision.Record
	// Release is the Helm release that the installation has by its record, one without a name for
	// none; nil where this pass says nothing of it.
	Release *helmrelease.Release
	// Repaired are objects that were put back. Compared is what else came of comparing all of them
	// with the record; nil where that did not come to its end.
	Repaired []ownership.Key
	Compared *Comparison
	// Health of the objects; nil where they were not read.
	Health *survey.Health
	// Misbehaved has notes about objects of which the API server said what can't be.
	Misbehaved []calls.Note
	// Taken names each manager whose fields were removed, since the API server refuses them together
	// with the add-on's.
	Taken []calls.Note
	// Shared says what is shared, and what is not any more, since this pass.
	Shared []string
	// Obstacle is what is in the way in the user cluster, where one call can see it.
	Obstacle *apply.Obstacle
	// HookAttempts of a hook failed in a row, and the next begins at HookRetry; 0: none did.
	HookAttempts int32
	HookRetry    time.Time
}

// Comparison has the objects that differ from the record and stay so: Fights since somebody else
// keeps changing them, Drifted since nothing is to be repaired, Newer since their content is our own
// and newer than the record.
type Comparison struct{ Fights, Drifted, Newer []ownership.Key }

// Asked is what people ask of an installation besides its revision.
type Asked struct {
	// Addon is its name in the catalogue.
	Addon           string
	TargetNamespace string
	CreateNamespace bool
	// Adopt lets objects and a Helm release that exist be adopted.
	Adopt bool
	// AdoptManagers are field managers whose fields of what is adopted count as a tool's; none without Adopt.
	AdoptManagers []string
	// Once leaves a revision that was healthy as it is from then on.
	Once bool
	// ReconcileAt asks for everything to be compared when it changes.
	ReconcileAt string
	// PruneApproved allows one prune of many objects (removal.Approval).
	PruneApproved string
	// PruneMany allows prunes of many objects, but for those that hold more than themselves.
	PruneMany bool
	// SkipHooks removes without hooks.
	SkipHooks bool
	// RemovedSince is when the removal was asked for; zero where it was not. ClusterGoes: the cluster
	// is being deleted.
	RemovedSince time.Time
	ClusterGoes  bool
}

// IsRemoved says whether the installation is to go.
func (a Asked) IsRemoved() bool { return !a.RemovedSince.IsZero() }

// Other is another installation of the cluster.
type Other struct {
	Name, Addon, TargetNamespace string
	// Deleted is one that goes, Leaving one that takes its objects along, Elder one that was made
	// before this one.
	Deleted, Leaving, Elder bool
	// Idle is one of which nothing was applied, by its status.
	Idle bool
	// Fingerprint differs whenever its record may.
	Fingerprint string
}

// Event is something that is new about the installation.
type Event struct {
	Warning                 bool
	Reason, Action, Message string
}

// Seed is what a pass asks of its caller.
type Seed struct {
	// Others are the other installations of the cluster.
	Others func(ctx context.Context) ([]Other, error)
	// NameOf is the name of the installation with an ID (ownership.Owner.ID), by its cluster's
	// origin; "" where there is none any more. It is asked after the pass too.
	NameOf func(origin types.UID, id string) string
	Notify func(Event)
	// CallFailed hears of each call to the user cluster that failed, and gives its answer.
	CallFailed func(about About, err error) *Stop
}

// About is what an answer is about.
type About string

const (
	// AboutAll is the installation as a whole, or its cluster.
	AboutAll About = "All"
	// AboutApply is that the objects come into the user cluster.
	AboutApply About = "Apply"
	// AboutHealth is that they work.
	AboutHealth About = "Health"
)

// Kind of a Stop.
type Kind int

const (
	// Waiting says that something has to happen first.
	Waiting Kind = iota
	// Retry says that something failed which may pass.
	Retry
	// RetryUnknown is Retry where it can't be told how things are, rather than that they are bad.
	RetryUnknown
	// Checkpoint says that the next pass, which begins at once, goes on from what this one found.
	Checkpoint
)

// Stop is the answer of a step that keeps the pass from going on; nil goes on.
type Stop struct {
	Kind  Kind
	About About
	// Reason is one of the API's words, Message a sentence. Cause is the reason that the cluster may have of its own; empty: none.
	Reason, Message, Cause string
	// Recheck is when to come back: for Waiting 0 is never, for both Retries after a back-off.
	Recheck time.Duration
}

// within has a wait end no later than after a time.
func (s *Stop) within(most time.Duration) *Stop {
	if s.Kind != Waiting {
		return s
	}
	sooner := *s
	sooner.Recheck = backoff.Sooner(s.Recheck, most)
	return &sooner
}

// Failed is a call on the seed that failed, or a record that the user cluster made larger than its
// objects explain. That another installation is being removed is waited for.
func Failed(err error) *Stop {
	if stop := handover(err); stop != nil {
		return stop
	}
	if grown, ok := errors.AsType[*revision.GrowthError](err); ok {
		return &Stop{Kind: RetryUnknown, About: AboutAll, Reason: v1.ReasonClusterMisbehaves, Message: grown.Error()}
	}
	if full, ok := errors.AsType[*revision.BudgetError](err); ok {
		return &Stop{About: AboutApply, Reason: v1.ReasonLimitExceeded, Message: full.Error(), Recheck: SlowestRetry}
	}
	return &Stop{Kind: Retry, About: AboutAll, Reason: v1.ReasonFailed, Message: err.Error()}
}

const (
	// RefusedRecheck is how often objects that the user cluster refused are tried again.
	RefusedRecheck = time.Minute
	// SlowestRetry is the longest wait between two attempts of what keeps failing.
	SlowestRetry = 5 * time.Minute
	// maxNamed is how many objects an event names.
	maxNamed = 5
)

// Pass begins a pass over an installation.
func (i *Installer) Pass(state *State, namespace string, asked Asked, seed Seed) Pass {
	shown := func(text string) string { return text }
	return Pass{installer: i, State: state, Namespace: namespace, Asked: asked, Seed: seed, Hide: shown}
}

// Record is the newest record, nil before the first intent.
func (p *Pass) Record() *revision.Record { return p.State.Record }

// stamp is the time of the pass as it is after it was stored: finer, what is written now would not
// equal what a restarted process writes from the record.
func (p *Pass) stamp() metav1.Time { return metav1.Time{Time: p.Now}.Rfc3339Copy() }

// Connect gives the pass its target.
func (p *Pass) Connect(connection *cluster.Connection) {
	p.Connection = connection
	p.State.connect(connection.UserCluster)
	if p.State.Watched.IsZero() || times.IsAhead(p.State.Watched, p.Now) {
		p.State.Watched = p.Now
	}
}

func (p *Pass) target() calls.Target {
	return calls.Target{
		Metadata: p.Connection.Metadata, Dynamic: p.Connection.Dynamic, Mapper: p.Connection.Mapper, Served: p.Connection,
	}
}

// RenewRollout drops a rollout that was begun with another answer about adoption: it would go on
// refusing what it may adopt now.
func (p *Pass) RenewRollout() {
	if p.State.adopting != p.Asked.adoption() {
		p.State.rollout = nil
	}
}

// IsRollingOut says whether a rollout is under way in this process.
func (p *Pass) IsRollingOut() bool { return p.State.rollout != nil }

// ObstacleState is how something is that was in the way; it is one call.
func (p *Pass) ObstacleState(ctx context.Context, obstacle apply.Obstacle) (string, error) {
	return obstacle.State(ctx, p.target())
}

// ForeignObjects are the objects of the Helm release that this one follows, of the kinds that are
// chosen.
func (p *Pass) ForeignObjects(
	ctx context.Context, chosen func(kind string) bool, limits survey.FoundLimits,
) ([]*unstructured.Unstructured, error) {
	if p.Foreign == nil {
		return nil, nil
	}
	claimed := slices.DeleteFunc(slices.Clone(p.Foreign.Objects), func(entry ownership.Entry) bool { return !chosen(entry.Kind) })
	return survey.OfRelease(ctx, p.target(), claimed, p.Foreign.Marks(), limits)
}

// NextSurvey is how long it takes until the objects are compared with the record, a Lease or a
// running Job is read, or copies of a pull Secret go.
func (p *Pass) NextSurvey() time.Duration {
	next := p.State.nextSurvey.Sub(p.Now)
	if by := p.lease(); by != nil {
		next = min(next, p.State.beat.Next(p.Now, by.staleAfter))
	}
	if p.State.runningPasses > 0 {
		next = min(next, backoff.After(p.State.runningPasses, firstRecheck, SlowestRecheck))
	}
	if p.copiesDue > 0 {
		next = min(next, p.copiesDue)
	}
	return max(next, firstRecheck)
}

func (p *Pass) nameOf() func(id string) string {
	name, origin := p.Seed.NameOf, p.Owner.ClusterUID
	return func(id string) string { return name(origin, id) }
}

func (p *Pass) remoteFailed(about About, err error) *Stop { return p.Seed.CallFailed(about, err) }

func (p *Pass) report(event Event, format string, about ...any) {
	event.Message = fmt.Sprintf(format, about...)
	p.Seed.Notify(event)
}
