package waves

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// Written are installations as the API server answered to our writes, by namespace and name, until
// the cache has them: counts go by what was written, and a cache may lag.
type Written map[string]map[string]writtenObject

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
func (w Written) Put(object *v1.AddonInstallation, removed bool, at time.Time) {
	if w[object.Namespace] == nil {
		w[object.Namespace] = map[string]writtenObject{}
	}
	w[object.Namespace][object.Name] = writtenObject{object: object, removed: removed, at: at}
}

// Doubt what is there under a name: a write of it had no good answer, and a cache that lags can't
// tell. It is among the Unseen until it was asked for.
func (w Written) Doubt(namespace, name string, at time.Time) {
	if w[namespace] == nil {
		w[namespace] = map[string]writtenObject{}
	}
	own := w[namespace][name]
	own.doubted, own.at = true, at
	w[namespace][name] = own
}

// DoubtedAt is when the last write in a namespace was made that may have arrived, and nobody knows;
// zero: there is none.
func (w Written) DoubtedAt(namespace string) time.Time {
	var last time.Time
	for _, own := range w[namespace] {
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

// Settle what was not known of a name.
func (w Written) Settle(key client.ObjectKey, by Answer, at time.Time) {
	if by.object == nil {
		w.drop(key.Namespace, key.Name)
		return
	}
	w.Put(by.object, by.removed, at)
}

// drop what was written under a name.
func (w Written) drop(namespace, name string) {
	delete(w[namespace], name)
	if len(w[namespace]) == 0 {
		delete(w, namespace)
	}
}

// Over puts what was written in a namespace over what the cache has of it, and forgets what the
// cache has too, but not a doubt.
func (w Written) Over(namespace string, live map[string]*v1.AddonInstallation) {
	for name, own := range w[namespace] {
		cached := live[name]
		switch {
		case own.object == nil || own.doubted && own.isSeen(cached):
		case own.isSeen(cached):
			w.drop(namespace, name)
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
func (w Written) Forget(gone *v1.AddonInstallation) {
	if own, ok := w[gone.Namespace][gone.Name]; ok && own.object != nil && own.object.UID == gone.UID {
		w.drop(gone.Namespace, gone.Name)
	}
}

// Unseen are the names in a namespace that were written a while ago and that the cache does not
// have, and those in doubt.
func (w Written) Unseen(namespace string, listed map[string]bool, now time.Time) []string {
	var found []string
	for name, own := range w[namespace] {
		if own.doubted || !own.removed && !listed[name] && now.Sub(own.at) >= UnseenFor {
			found = append(found, name)
		}
	}
	return found
}
