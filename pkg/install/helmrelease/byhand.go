package helmrelease

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
)

// IsFollowed says whether a release has a revision after ours, by any author; it costs one call.
func (p Place) IsFollowed(ctx context.Context, ours *Release) (bool, error) {
	next := *ours
	next.Revision++
	_, err := p.Metadata.Resource(secretResource).Namespace(p.Namespace).Get(ctx, next.Secret(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking for a later revision of Helm release %q: %w", ours.Name, err)
	}
	return true, nil
}

const mostByHand = 10 * history

// FindByHand finds changes by others to our release: later revisions, and those that no installation made; nil if there
// are none. It reads the objects of the newest revisions, as many as Helm stores.
func FindByHand(ctx context.Context, place Place, ours *Release, owner ownership.Owner) (*Foreign, error) {
	items, err := place.revisions(ctx, labels.SelectorFromSet(labels.Set{"owner": "helm", "name": ours.Name}), ours.Name)
	if err != nil {
		return nil, err
	}
	items = slices.DeleteFunc(items, func(item item) bool {
		return item.revision <= ours.Revision && item.owner == owner.ID() || item.revision == ours.Revision
	})
	slices.SortFunc(items, func(a, b item) int { return cmp.Compare(b.revision, a.revision) })
	items = items[:min(len(items), mostByHand)] // finding each one's owner costs time
	items = slices.DeleteFunc(items, func(item item) bool { return place.otherInstallation(item, owner) != "" })
	if len(items) == 0 {
		return nil, nil
	}
	found := &Foreign{Name: ours.Name, Namespace: place.Namespace, Revision: items[0].revision, Secret: items[0].name, ByHand: true}
	if items[0].pending {
		found.PendingSince = items[0].made
	}
	for _, item := range items[:min(len(items), history)] {
		one := &Foreign{Name: ours.Name, Namespace: place.Namespace, Revision: item.revision, Secret: item.name}
		if err := one.read(ctx, place.Secrets); err != nil {
			return nil, err
		}
		if found.Problem == "" && one.Problem != "" {
			found.Problem, found.Secret = one.Problem, one.Secret
		}
		found.Objects, found.Hooks = merged(found.Objects, one.Objects), merged(found.Hooks, one.Hooks)
	}
	return found, nil
}

func merged(all, more []ownership.Entry) []ownership.Entry {
	known := ownership.Inventory(all).ByKey()
	for _, entry := range more {
		if _, is := known[entry.Key]; !is && len(all) < ownership.MaxObjects {
			known[entry.Key] = entry
			all = append(all, entry)
		}
	}
	return all
}

// IsUnderWay says whether a user's helm works at the newest revision, within its timeout.
func (f *Foreign) IsUnderWay(now time.Time, timeout time.Duration) bool {
	return !f.PendingSince.IsZero() && now.Sub(f.PendingSince).Abs() < timeout
}
