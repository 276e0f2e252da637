package installer

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/revision"
)

// Load reads the newest record, unless it is known.
func (p *Run) Load(ctx context.Context) error {
	return p.load(ctx, p.installer.Reads.LoadFirst)
}

// LoadForRemoval is Load for a removal: without a record nothing is removed, so a missing record is confirmed past the
// list that installations share.
func (p *Run) LoadForRemoval(ctx context.Context) error {
	if p.Record() == nil {
		p.State.Loaded = false
	}
	return p.load(ctx, p.installer.Reads.Load)
}

func (p *Run) load(ctx context.Context, read func(context.Context, string, ownership.Owner) (*revision.Record, error)) error {
	if p.State.Loaded {
		return nil
	}
	record, err := read(ctx, p.Namespace, p.Owner)
	if err != nil {
		return err
	}
	p.State.Record, p.State.Loaded = record, true
	p.State.health = nil // it is of another revision if the save seemed to fail after it was written
	if record.IsApplied() {
		p.State.Record = record.Light() // functions that need the rest read it
	}
	if problem := record.Unreadable(); problem != nil {
		p.report(Event{Warning: true, Reason: v1.EventRecordDamaged, Action: "LoadRecord"},
			"%v. Everything is applied again on top of revision %d, and objects that only the damaged record listed stay in the user cluster",
			problem, record.Revision)
	}
	return nil
}

// ReadIntent uses the recorded objects of the intent. A new rendering could differ, such as in a certificate that the
// chart generates.
func (p *Run) ReadIntent() *loop.Outcome {
	objects, err := revision.DecodeObjects(p.Record().Objects)
	if err != nil {
		return Failed(err)
	}
	p.Objects, p.Hooks = objects, p.Record().Hooks
	return nil
}

// GoBack continues a recorded rollback: it needs neither catalogue nor content.
func (p *Run) GoBack(ctx context.Context) *loop.Outcome {
	if p.State.rollout == nil {
		if stop := p.ReadIntent(); stop != nil {
			return stop
		}
	}
	return p.Advance(ctx)
}

// Reown makes a recreated Cluster with another UID the owner of the records, once its user cluster is known to be the
// same.
func (p *Run) Reown(ctx context.Context) *loop.Outcome {
	if err := p.installer.Writes.Reown(ctx, p.Namespace, p.Owner, p.ClusterOwner); err != nil {
		return Failed(err)
	}
	p.State.forgetRecord()
	return nil
}

// Forget deletes all records: a crash before it restarts the removal. Objects that were left to a sibling whose removal
// began meanwhile are removed with this installation.
func (p *Run) Forget(ctx context.Context) *loop.Outcome {
	defer p.installer.handovers.begin(p.forgetting(p.Owner.Installation))()
	if left := p.leaves; len(left) > 0 {
		objects, _, err := p.removable(ctx)
		if err != nil {
			return Failed(err)
		}
		if len(objects.Without(left)) < len(objects) {
			return waitToRemove("the installation that should have kept the shared objects is removed too, so they are removed now")
		}
	}
	if err := p.installer.Writes.Forget(ctx, p.Namespace, p.Owner); err != nil {
		return Failed(err)
	}
	return nil
}

// ReadWhole returns a record with its objects and manifest: itself, or the seed's if it is in memory without them. If
// the seed has another revision, or another state, another process wrote it: the next reconciliation begins with it.
func (p *Run) ReadWhole(ctx context.Context, record *revision.Record) (*revision.Record, error) {
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
	if !p.Asked.IsRemoved() { // known objects of a removal are removed anyway
		p.State.Loaded = false
	}
	return nil, err
}

// errGone says that a known record was deleted.
var errGone = errors.New("was deleted")

// readToChange reads the complete record, to change it or to restore its objects.
func (p *Run) readToChange(ctx context.Context) (*revision.Record, error) {
	record, err := p.ReadWhole(ctx, p.Record())
	if err != nil {
		return nil, err
	}
	return record, record.Unreadable()
}

// recordedObjects reads the complete record: the objects are not kept in memory.
func (p *Run) recordedObjects(ctx context.Context) (*revision.Record, []*unstructured.Unstructured, error) {
	record, err := p.readToChange(ctx)
	if err != nil {
		return nil, nil, err
	}
	objects, err := revision.DecodeObjects(record.Objects)
	return record, objects, err
}

// saveAmended writes a changed record without a change of its state, and remembers it: an applied one without its
// objects.
func (p *Run) saveAmended(ctx context.Context, record *revision.Record) error {
	if err := p.save(ctx, record); err != nil {
		return err
	}
	p.State.Record = record
	if record.IsApplied() {
		p.State.Record = record.Light()
	}
	return nil
}

// save writes a record without a change of its state: a new name does not make an intent applied.
func (p *Run) save(ctx context.Context, record *revision.Record) error {
	if record.IsApplied() {
		return p.installer.Writes.SaveApplied(ctx, p.Namespace, record)
	}
	return p.installer.Writes.SaveIntent(ctx, p.Namespace, record)
}

// Amend changes the record and writes it back.
func (p *Run) Amend(ctx context.Context, change func(*revision.Record)) *loop.Outcome {
	if err := p.amend(ctx, change); err != nil {
		return p.recordUnknown(err)
	}
	return nil
}

// amend changes the complete record and writes it back. An intent is complete in memory.
func (p *Run) amend(ctx context.Context, change func(*revision.Record)) error {
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
		p.evaluatedOtherwise()
	}
	return nil
}

// recordUnknown ends the reconciliation because the seed's record is unknown: the next one reads it.
func (p *Run) recordUnknown(err error) *loop.Outcome {
	p.State.forgetRecord()
	return Failed(err)
}
