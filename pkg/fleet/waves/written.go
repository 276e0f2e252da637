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

// Written has installations as the API server returned them for our writes, by cluster and name, until the cache has
// them: counts are based on writes, and a cache may lag. The caller chooses the names of clusters.
type Written map[types.NamespacedName]map[string]writtenObject

type writtenObject struct {
	object *v1.AddonInstallation
	// removed says that the answer was to a deletion.
	removed bool
	// unknown says that a later write had no good answer: it is unknown whether it arrived.
	unknown bool
	at      time.Time
}

// UnseenFor is how long the cache may lack a written object before the API server is asked.
const UnseenFor = 10 * time.Second

// Put stores the API server's answer; removed: to a deletion.
func (w Written) Put(in types.NamespacedName, object *v1.AddonInstallation, removed bool, at time.Time) {
	if w[in] == nil {
		w[in] = map[string]writtenObject{}
	}
	w[in][object.Name] = writtenObject{object: object, removed: removed, at: at}
}

// MarkUnknown marks the object of a name as unknown: a write of it had no good answer, and a lagging cache can't show the
// result. It is among the Unseen until the API server was asked.
func (w Written) MarkUnknown(in types.NamespacedName, name string, at time.Time) {
	if w[in] == nil {
		w[in] = map[string]writtenObject{}
	}
	own := w[in][name]
	own.unknown, own.at = true, at
	w[in][name] = own
}

// UnknownSince is when the last write with an unknown result was made in a cluster; zero if there is none.
func (w Written) UnknownSince(in types.NamespacedName) time.Time {
	var last time.Time
	for _, own := range w[in] {
		if own.unknown && own.at.After(last) {
			last = own.at
		}
	}
	return last
}

// Answer is the API server's object of a name. One that does not exist counts as being removed as long as the cache
// has it.
type Answer struct {
	// object is nil if there is none, also not in the cache.
	object  *v1.AddonInstallation
	removed bool
}

// Ask gets the object of a name from the API server, past the cache.
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

// Names are those of written objects in a cluster that a cache may lack, in any order.
func (w Written) Names(in types.NamespacedName) []string { return slices.Collect(maps.Keys(w[in])) }

// Settle resolves the unknown state of a name.
func (w Written) Settle(in types.NamespacedName, name string, by Answer, at time.Time) {
	if by.object == nil {
		w.drop(in, name)
		return
	}
	w.Put(in, by.object, by.removed, at)
}

// drop forgets the write of a name.
func (w Written) drop(in types.NamespacedName, name string) {
	delete(w[in], name)
	if len(w[in]) == 0 {
		delete(w, in)
	}
}

// Over merges the written objects of a cluster into those of the cache, and forgets those that the cache has too,
// unless their state is unknown.
func (w Written) Over(in types.NamespacedName, live map[string]*v1.AddonInstallation) {
	for name, own := range w[in] {
		cached := live[name]
		switch {
		case own.object == nil || own.unknown && own.isSeen(cached):
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

// isSeen reports whether a cache with this object, nil for none, has the write, or a later one.
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

// Forget forgets the writes of a deleted object.
func (w Written) Forget(in types.NamespacedName, gone *v1.AddonInstallation) {
	if own, ok := w[in][gone.Name]; ok && own.object != nil && own.object.UID == gone.UID {
		w.drop(in, gone.Name)
	}
}

// Unseen are the names in a cluster that were written a while ago and that the cache lacks, and those with an unknown
// state.
func (w Written) Unseen(in types.NamespacedName, listed map[string]bool, now time.Time) []string {
	var found []string
	for name, own := range w[in] {
		if own.unknown || !own.removed && !listed[name] && now.Sub(own.at) >= UnseenFor {
			found = append(found, name)
		}
	}
	return found
}
