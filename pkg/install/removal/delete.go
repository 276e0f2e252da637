package removal

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
)

type deleter struct {
	target calls.Target
	owner  ownership.Owner
	heir   Heir
	kinds  *calls.Kinds
}

// Heir names the installations that left objects to the owner: it removes those that it planned.
type Heir struct {
	// Left are the IDs of siblings that its record names, NameOf is as in ownership.Question.
	Left   []string
	NameOf func(id string) string
}

func newDeleter(target calls.Target, owner ownership.Owner, heir Heir) *deleter {
	return &deleter{target: target, owner: owner, heir: heir, kinds: &calls.Kinds{Mapper: target.Mapper}}
}

type presence struct {
	entry ownership.Entry
	// live is its metadata; nil if it does not exist, or is not ours.
	live *metav1.PartialObjectMetadata
	// unknown: the API server of the kind does not answer. deleted: it was deleted, or does not exist.
	unknown, deleted bool
	// until names the awaited condition of a decision about it.
	until string
}

func presences(entries ownership.Inventory, unknown bool) (all []*presence) {
	for _, entry := range entries {
		all = append(all, &presence{entry: entry, unknown: unknown})
	}
	return all
}

// isMarked says whether an existing object is marked to stay, and reports it. Nil: no mark counts.
func (one *presence) isMarked(report func(key ownership.Key)) bool {
	if report == nil || one.live == nil || one.live.DeletionTimestamp != nil || !ownership.StaysBehind(one.live) {
		return false
	}
	report(one.entry.Key)
	return true
}

// present are the entries whose objects exist. Entries without a UID get it if the object is ours.
func (d *deleter) present(ctx context.Context, entries ownership.Inventory) (there ownership.Inventory, err error) {
	seen, err := d.find(ctx, entries)
	return existing(seen), err
}

func existing(seen []*presence) (there ownership.Inventory) {
	for _, one := range seen {
		if one.live != nil || one.unknown {
			there = append(there, one.entry)
		}
	}
	return there
}

func (d *deleter) find(ctx context.Context, entries ownership.Inventory) ([]*presence, error) {
	seen := presences(entries, false)
	return seen, calls.Each(ctx, seen, d.findOne)
}

func (d *deleter) findOne(ctx context.Context, one *presence) error {
	client, served, err := d.client(ctx, one)
	if err != nil || !served {
		return err
	}
	live, err := client.Read(ctx, one.entry.Key)
	if err != nil || live == nil {
		return err
	}
	asked := ownership.Question{Owner: d.owner, Entry: &one.entry}
	if ownership.CanBeShared(one.entry.Key) {
		asked.Left, asked.NameOf = d.heir.Left, d.heir.NameOf
	}
	found := ownership.Of(live, asked)
	if !found.IsDeletable() {
		return nil
	}
	if one.live = live; one.entry.UID != live.UID {
		one.entry.UID, one.entry.Created = live.UID, found.IsMade()
	}
	return nil
}

// client returns the client for an entry's object. An unserved kind has no objects, unless the API server of its
// group is down. Reading the group's APIService costs far less than discovery, so that is tried first.
func (d *deleter) client(ctx context.Context, one *presence) (calls.Client, bool, error) {
	registered := false
	where, served, err := d.kinds.Known(one.entry.Key, one.entry.Version)
	if err == nil && !served {
		registered, one.unknown, err = d.target.IsRegistered(ctx, one.entry)
		if err == nil && registered {
			where, served, err = d.kinds.FindAny(one.entry.Key, one.entry.Version)
		}
	}
	if err != nil {
		return calls.Client{}, false, fmt.Errorf("looking up the kind of %q: %w", one.entry.Key, err)
	}
	if !served {
		one.unknown = one.unknown || registered && d.target.IsMissing(one.entry.Group)
		return calls.Client{}, false, nil
	}
	one.unknown = false
	return calls.ClientOf(d.target, where, one.entry.Namespace), true, nil
}

// deleteAll deletes stage by stage in reverse order. Stuck are those that were not deleted.
func (d *deleter) deleteAll(ctx context.Context, entries ownership.Inventory) (stuck ownership.Inventory, err error) {
	for at := calls.StageCount - 1; at >= 0; at-- {
		var now []*presence
		for _, entry := range slices.Backward(entries) {
			if calls.StageOf(entry.GroupKind()) == at {
				now = append(now, &presence{entry: entry})
			}
		}
		failed := calls.Each(ctx, now, d.deleteOne)
		for _, one := range slices.Backward(now) {
			if !one.deleted {
				stuck = append(stuck, one.entry)
			}
		}
		if err == nil {
			err = failed
		}
	}
	return stuck, err
}

func (d *deleter) deleteOne(ctx context.Context, one *presence) error {
	client, served, err := d.client(ctx, one)
	if err != nil {
		return err
	}
	if served {
		err = calls.DeleteObject(ctx, client, one.entry)
	}
	one.deleted = err == nil && !one.unknown
	return err
}

// holdsMore says whether other objects or data are deleted with an object.
func (d *deleter) holdsMore(ctx context.Context, entry ownership.Entry) (bool, error) {
	switch entry.GroupKind() {
	case ownership.NamespaceGK, calls.ClaimGK:
		return true, nil
	case ownership.DefinitionGK:
		return d.isInUse(ctx, entry)
	}
	return false, nil
}

// isInUse says whether a CRD has objects in its stored version, which needs no conversion webhook.
// If it does not serve that, it counts as in use, unless it was never established.
func (d *deleter) isInUse(ctx context.Context, entry ownership.Entry) (bool, error) {
	definition, err := calls.ReadWhole(ctx, d.target.Dynamic.Resource(calls.Definitions), calls.Place{Name: entry.Name})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading %q: %w", entry.Key, err)
	}
	where := calls.DefinedResource(definition)
	if where.Version == "" {
		return true, nil
	}
	established, _ := calls.Establishment(definition)
	page, err := d.target.Metadata.Resource(where).List(ctx, metav1.ListOptions{Limit: 1})
	if calls.IsUnserved(err) && !established {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("listing the objects of %q: %w", entry.Key, err)
	}
	return len(page.Items) > 0, nil
}
