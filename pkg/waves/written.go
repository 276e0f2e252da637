package waves

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// Written are installations as the API server answered to our writes, by cluster and name, until the
// cache has them: counts go by what was written, and a cache may lag. Clusters are in the caller's
// word for them.
type Written map[types.NamespacedName]map[string]writtenObject

type writtenObject struct {
	object *v1.AddonInstallation
	// removed says that the answer was to a deletion.
	removed bool
	// doubted says that a later write had no good answer: it may have arrived or not.
	doubted bool
	at      time.Time
}

// UnseenFor is how long the cache may not have an object that was written, until it is asked for.
const UnseenFor = 10 * time.Second

// Put what the API server answered; removed: to a deletion.
func (w Written) Put(in types.NamespacedName, object *v1.AddonInstallation, removed bool, at time.Time) {
	if w[in] == nil {
		w[in] = map[string]writtenObject{}
	}
	w[in][object.Name] = writtenObject{object: object, removed: removed, at: at}
}

// Doubt what is there under a name: a write of it had no good answer, and a cache that lags can't
// tell. It is among the Unseen until it was asked for.
func (w Written) Doubt(in types.NamespacedName, name string, at time.Time) {
	if w[in] == nil {
		w[in] = map[string]writtenObject{}
	}
	own := w[in][name]
	own.doubted, own.at = true, at
	w[in][name] = own
}

// DoubtedAt is when the last write in a cluster was made that may have arrived, and nobody knows;
// zero: there is none.
func (w Written) DoubtedAt(in types.NamespacedName) time.Time {
	var last time.Time
	for _, own := range w[in] {
		if own.doubted && own.at.After(last) {
			last = own.at
		}
	}
	return last
}

// Answer is what the API server has under a name. One that is no more is being removed as long as
// the cache has it.
type Answer struct {
	// object is nil where there is none, in the cache neither.
	object  *v1.AddonInstallation
	removed bool
}

// Ask the API server what there is under a name, past the cache.
func Ask(ctx context.Context, cache, server client.Reader, key client.ObjectKey) (Answer, error) {
	cached, found := &v1.AddonInstallation{}, &v1.AddonInstallation{}
	inCache := cache.Get(ctx, key, cached)
	if client.IgnoreNotFound(inCache) != nil {
		return Answer{}, fmt.Errorf("getting installation %q: %w", key, inCache)
	}
	err := server.Get(ctx, key, found)
	if client.IgnoreNotFound(err) != nil {
		return Answer{}, fmt.Errorf("getting installation %q: %w", key, err)
	}
	switch {
	case err == nil:
		return Answer{object: found}, nil
	case inCache == nil:
		return Answer{cached, true}, nil
	}
	return Answer{}, nil
}

// Names are those in a cluster of which something was written that a cache may not have, in any order.
func (w Written) Names(in types.NamespacedName) []string { return slices.Collect(maps.Keys(w[in])) }

// Settle what was not known of a name.
func (w Written) Settle(in types.NamespacedName, name string, by Answer, at time.Time) {
	if by.object == nil {
		w.drop(in, name)
		return
	}
	w.Put(in, by.object, by.removed, at)
}

// drop what was written under a name.
func (w Written) drop(in types.NamespacedName, name string) {
	delete(w[in], name)
	if len(w[in]) == 0 {
		delete(w, in)
	}
}

// Over puts what was written in a cluster over what the cache has of it, and forgets what the
// cache has too, but not a doubt.
func (w Written) Over(in types.NamespacedName, live map[string]*v1.AddonInstallation) {
	for name, own := range w[in] {
		cached := live[name]
		switch {
		case own.object == nil || own.doubted && own.isSeen(cached):
		case own.isSeen(cached):
			w.drop(in, name)
		case own.removed:
			going := cached.DeepCopy()
			at := metav1.NewTime(own.at)
			going.DeletionTimestamp = &at
			live[name] = going
		default:
			live[name] = own.object
		}
	}
}

// isSeen says whether a cache that has this, nil for nothing, has what was written, or what came
// later.
func (w writtenObject) isSeen(cached *v1.AddonInstallation) bool {
	if cached == nil {
		return w.removed
	}
	if w.removed {
		return cached.UID != w.object.UID || !cached.DeletionTimestamp.IsZero()
	}
	order, err := resourceversion.CompareResourceVersion(cached.ResourceVersion, w.object.ResourceVersion)
	return err != nil || order >= 0
}

// Forget what was written of an object that is gone.
func (w Written) Forget(in types.NamespacedName, gone *v1.AddonInstallation) {
	if own, ok := w[in][gone.Name]; ok && own.object != nil && own.object.UID == gone.UID {
		w.drop(in, gone.Name)
	}
}

// Unseen are the names in a cluster that were written a while ago and that the cache does not
// have, and those in doubt.
func (w Written) Unseen(in types.NamespacedName, listed map[string]bool, now time.Time) []string {
	var found []string
	for name, own := range w[in] {
		if own.doubted || !own.removed && !listed[name] && now.Sub(own.at) >= UnseenFor {
			found = append(found, name)
		}
	}
	return found
}
