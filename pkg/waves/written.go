package waves

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"

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

// Drop what was written under a name.
func (w Written) Drop(namespace, name string) {
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
			w.Drop(namespace, name)
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
		w.Drop(gone.Namespace, gone.Name)
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
