package installer

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/ownership"
	"github.com/trellis-addons/trellis/pkg/revision"
)

// Load reads the newest record, unless it is known.
func (p *Pass) Load(ctx context.Context) error {
	return p.load(ctx, p.installer.Reads.LoadFirst)
}

// LoadForRemoval is Load for an installation that is removed: where nothing is on record nothing is
// removed, so that is read past the list that installations share.
func (p *Pass) LoadForRemoval(ctx context.Context) error {
	if p.Record() == nil {
		p.State.Loaded = false
	}
	return p.load(ctx, p.installer.Reads.Load)
}

func (p *Pass) load(ctx context.Context, read func(context.Context, string, ownership.Owner) (*revision.Record, error)) error {
	if p.State.Loaded {
		return nil
	}
	record, err := read(ctx, p.Namespace, p.Owner)
	if err != nil {
		return err
	}
	p.State.Record, p.State.Loaded = record, true
	p.State.health = nil // that of another revision, where a save was lost only after it was written
	if record.IsApplied() {
		p.State.Record = record.Light() // whatever needs the rest reads it
	}
	if problem := record.Unreadable(); problem != nil {
		p.report(Event{Warning: true, Reason: v1.EventRecordDamaged, Action: "LoadRecord"},
			"%v. Everything is applied anew on top of revision %d, and objects that only the damaged record knew stay where they are",
			problem, record.Revision)
	}
	return nil
}

// ReadIntent has the objects of the intent on record. Rendered again they could be others, such as
// a certificate that the chart makes.
func (p *Pass) ReadIntent() *Stop {
	objects, err := revision.DecodeObjects(p.Record().Objects)
	if err != nil {
		return Failed(err)
	}
	p.Objects, p.Hooks = objects, p.Record().Hooks
	return nil
}

// GoBack continues a rollback on record: it needs neither catalogue nor content.
func (p *Pass) GoBack(ctx context.Context) *Stop {
	if p.State.rollout == nil {
		if stop := p.ReadIntent(); stop != nil {
			return stop
		}
	}
	return p.Advance(ctx)
}

// Reown makes a Cluster that came back with another UID the owner of the records, once its user
// cluster is known to be the same.
func (p *Pass) Reown(ctx context.Context) *Stop {
	if err := p.installer.Writes.Reown(ctx, p.Namespace, p.Owner, p.ClusterOwner); err != nil {
		return Failed(err)
	}
	p.State.doubt()
	return nil
}

// Forget drops all records: until then a crash begins the removal again. What was left to a sibling
// that is removed meanwhile goes with this installation after all.
func (p *Pass) Forget(ctx context.Context) *Stop {
	defer p.installer.handovers.begin(p.forgetting(p.Owner.Installation))()
	if left := p.leaves; len(left) > 0 {
		objects, _, err := p.removable(ctx)
		if err != nil {
			return Failed(err)
		}
		if len(objects.Without(left)) < len(objects) {
			return &Stop{
				About: AboutAll, Reason: v1.ReasonRemoving, Recheck: removalRecheck,
				Message: "the installation that objects were left to is removed too: they are removed now",
			}
		}
	}
	if err := p.installer.Writes.Forget(ctx, p.Namespace, p.Owner); err != nil {
		return Failed(err)
	}
	return nil
}

// ReadWhole gives a record with its objects and manifest: itself, or what the seed has of one that
// is kept in memory without them. Another revision, or one in another state, is somebody else's
// doing: the next pass begins with what the seed has.
func (p *Pass) ReadWhole(ctx context.Context, record *revision.Record) (*revision.Record, error) {
	if !record.IsLight() {
		return record, nil
	}
	stored, err := p.installer.Reads.Load(ctx, p.Namespace, p.Owner)
	switch {
	case err != nil:
		return nil, err
	case stored == nil:
		err = fmt.Errorf("the release record of %q %w", p.Owner.Installation, errGone)
	case record.Unreadable() == nil && stored.Unreadable() != nil:
		err = stored.Unreadable()
	case stored.Revision != record.Revision || stored.State != record.State:
		err = &revision.ConflictError{Secret: fmt.Sprintf("%s, revision %d", record.Installation, record.Revision)}
	default:
		stored.CopyProgress(record)
		return stored, nil
	}
	if !p.Asked.IsRemoved() { // what is known of an installation that goes is removed all the same
		p.State.Loaded = false
	}
	return nil, err
}

// errGone says that somebody deleted a record that was known.
var errGone = errors.New("is gone: somebody deleted it")

// readToChange reads the record whole, to change it or to put its objects back.
func (p *Pass) readToChange(ctx context.Context) (*revision.Record, error) {
	record, err := p.ReadWhole(ctx, p.Record())
	if err != nil {
		return nil, err
	}
	return record, record.Unreadable()
}

// recordedObjects reads the record whole: the objects are not kept in memory.
func (p *Pass) recordedObjects(ctx context.Context) (*revision.Record, []*unstructured.Unstructured, error) {
	record, err := p.readToChange(ctx)
	if err != nil {
		return nil, nil, err
	}
	objects, err := revision.DecodeObjects(record.Objects)
	return record, objects, err
}

// saveAmended writes a changed record in the state that it has, and remembers it: one that is
// applied without its objects.
func (p *Pass) saveAmended(ctx context.Context, record *revision.Record) error {
	if err := p.save(ctx, record); err != nil {
		return err
	}
	p.State.Record = record
	if record.IsApplied() {
		p.State.Record = record.Light()
	}
	return nil
}

// save writes a record in the state that it has: an intent that gets another name is not applied by
// that.
func (p *Pass) save(ctx context.Context, record *revision.Record) error {
	if record.IsApplied() {
		return p.installer.Writes.SaveApplied(ctx, p.Namespace, record)
	}
	return p.installer.Writes.SaveIntent(ctx, p.Namespace, record)
}

// Amend changes the record and writes it back.
func (p *Pass) Amend(ctx context.Context, change func(*revision.Record)) *Stop {
	if err := p.amend(ctx, change); err != nil {
		return p.doubted(err)
	}
	return nil
}

// amend changes the record, read whole, and writes it back. That of an intent is whole in memory.
func (p *Pass) amend(ctx context.Context, change func(*revision.Record)) error {
	record, err := p.readToChange(ctx)
	if err != nil {
		return err
	}
	amended := *record
	change(&amended)
	if err := p.saveAmended(ctx, &amended); err != nil {
		return err
	}
	if !equality.Semantic.DeepEqual(record.Health, amended.Health) {
		p.judgedOtherwise()
	}
	return nil
}

// doubted ends the pass since it is not known what the seed has: the next one reads the record.
func (p *Pass) doubted(err error) *Stop {
	p.State.doubt()
	return Failed(err)
}
