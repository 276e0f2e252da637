package installer

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/ownership"
	"github.com/trellis-addons/trellis/pkg/revision"
)

// Load reads the newest record, unless it is known.
func (p *Pass) Load(ctx context.Context) error {
	return p.load(ctx, p.installer.Reads.LoadFirst)
}

// LoadForRemoval is Load for an installation that goes: nothing on record lets it go, so that is
// read past what is shared.
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
	if record != nil && record.State == revision.StateApplied {
		p.State.Record = record.Light() // whatever needs the rest reads it
	}
	if record != nil && record.Skipped > 0 {
		p.report(Event{Warning: true, Reason: v1.EventRecordDamaged, Action: "LoadRecord"},
			"the record of revision %d can't be read: %s. Everything is applied anew on top of revision %d, and objects that only the damaged "+
				"record knew stay where they are", record.Skipped, record.Damage, record.Revision)
	}
	return nil
}

// ReadIntent has the objects of the intent on record. Rendered again they could be others, such as
// a certificate that the chart makes.
func (p *Pass) ReadIntent() error {
	objects, err := revision.DecodeObjects(p.Record().Objects)
	if err != nil {
		return err
	}
	p.Objects, p.Hooks = objects, p.Record().Hooks
	return nil
}

// GoBack takes a rollback on record further: it needs neither catalogue nor content.
func (p *Pass) GoBack(ctx context.Context) *Stop {
	if p.State.rollout == nil {
		if err := p.ReadIntent(); err != nil {
			return Failed(err)
		}
	}
	return p.Advance(ctx)
}

// Reown makes a Cluster that came back with another UID the owner of the records, once its user
// cluster is known to be the same.
func (p *Pass) Reown(ctx context.Context) error {
	err := p.installer.Writes.Reown(ctx, p.Namespace, p.Owner, v1.ClusterIdentity{Name: p.Cluster.Name, UID: p.Cluster.UID})
	if err == nil {
		p.State.doubt()
	}
	return err
}

// Forget drops all records: until then a crash begins the removal again.
func (p *Pass) Forget(ctx context.Context) error {
	return p.installer.Writes.Forget(ctx, p.Namespace, p.Owner)
}

// ReadWhole gives a record with its objects and manifest: itself, or what the seed has of one that
// is kept in memory without them. Another revision, or one in another state, is somebody else's
// doing.
func (p *Pass) ReadWhole(ctx context.Context, record *revision.Record) (*revision.Record, error) {
	if !record.IsLight() {
		return record, nil
	}
	stored, err := p.installer.Reads.Load(ctx, p.Namespace, p.Owner)
	if err != nil {
		return nil, err
	}
	if stored == nil || stored.Revision != record.Revision || stored.State != record.State {
		return nil, &revision.ConflictError{Secret: fmt.Sprintf("%s, revision %d", record.Installation, record.Revision)}
	}
	stored.CopyProgress(record)
	return stored, nil
}

// recordedObjects reads the record whole: the objects are not kept in memory.
func (p *Pass) recordedObjects(ctx context.Context) (*revision.Record, []*unstructured.Unstructured, error) {
	record, err := p.installer.Reads.Load(ctx, p.Namespace, p.Owner)
	if err != nil {
		return nil, nil, err
	}
	if record == nil {
		return nil, nil, fmt.Errorf("the release record of %q is gone: edit the installation to have it made anew", p.Owner.Installation)
	}
	if record.Skipped > 0 {
		p.State.doubt() // the next pass goes on from the record before
		return nil, nil, fmt.Errorf("the record of revision %d can't be read: %s", record.Skipped, record.Damage)
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

// Amend changes the record and writes it back; where that fails it is read again.
func (p *Pass) Amend(ctx context.Context, change func(*revision.Record)) *Stop {
	if err := p.amend(ctx, change); err != nil {
		p.State.doubt()
		return Failed(err)
	}
	return nil
}

// amend changes the record, read whole, and writes it back. That of an intent is whole in memory.
func (p *Pass) amend(ctx context.Context, change func(*revision.Record)) error {
	var err error
	amended := *p.Record()
	record := &amended
	if record.IsLight() {
		if record, err = p.installer.Reads.Load(ctx, p.Namespace, p.Owner); err != nil || record == nil {
			return err
		}
	}
	if record.Skipped > 0 {
		p.State.doubt() // the next pass goes on from the record before
		return fmt.Errorf("the record of revision %d can't be read: %s", record.Skipped, record.Damage)
	}
	change(record)
	return p.saveAmended(ctx, record)
}
