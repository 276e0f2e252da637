package release

import (
	"context"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// rollStands is how long a list that many share is believed.
const rollStands = 10 * time.Second

// roll answers questions about many names of a namespace from one list that is at most a moment old: installations that begin
// together, or after a restart, ask once for all of them. It does not answer for names that were written since. It may be used by
// many goroutines.
type roll[V any] struct {
	now     func() time.Time
	flights singleflight.Group
	mutex   sync.Mutex
	pages   map[string]*page[V]
}

// page is the list of one namespace; while it is being made it stands for nothing, and collects what is written.
type page[V any] struct {
	begun   time.Time
	listed  bool
	entries map[string]V
	// partial pages do not hold every name.
	partial bool
	// touched are names that were written since the list began.
	touched map[string]bool
}

// lister lists a namespace; partial says that there was more than is listed.
type lister[V any] func() (entries map[string]V, partial bool, err error)

// look tells what the list has of a name, and whether that can be relied on.
func (r *roll[V]) look(ctx context.Context, namespace, name string, list lister[V]) (value V, sure bool, err error) {
	if value, sure, stands := r.read(namespace, name); stands {
		return value, sure, nil
	}
	flight := r.flights.DoChan(namespace, func() (any, error) {
		if r.stands(namespace) { // somebody listed it between the look and the flight
			return nil, nil
		}
		return nil, r.take(namespace, list)
	})
	select {
	case <-ctx.Done():
		return value, false, context.Cause(ctx)
	case landed := <-flight:
		if landed.Err != nil {
			return value, false, landed.Err
		}
	}
	value, sure, _ = r.read(namespace, name)
	return value, sure, nil
}

func (r *roll[V]) read(namespace, name string) (value V, sure, stands bool) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	known := r.pages[namespace]
	if known == nil || !known.listed || r.now().Sub(known.begun) >= rollStands {
		return value, false, false
	}
	return known.entries[name], !known.partial && !known.touched[name], true
}

func (r *roll[V]) stands(namespace string) bool {
	_, _, stands := r.read(namespace, "")
	return stands
}

// take lists a namespace anew, and drops what is old of others.
func (r *roll[V]) take(namespace string, list lister[V]) error {
	made := r.begin(namespace)
	entries, partial, err := list()
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if err != nil {
		delete(r.pages, namespace)
		return err
	}
	made.entries, made.partial, made.listed = entries, partial, true
	return nil
}

func (r *roll[V]) begin(namespace string) *page[V] {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	now := r.now()
	maps.DeleteFunc(r.pages, func(_ string, known *page[V]) bool { return known.listed && now.Sub(known.begun) >= rollStands })
	if r.pages == nil {
		r.pages = map[string]*page[V]{}
	}
	r.pages[namespace] = &page[V]{begun: now, touched: map[string]bool{}}
	return r.pages[namespace]
}

// touch says that a name was written, or may have been.
func (r *roll[V]) touch(namespace, name string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if known := r.pages[namespace]; known != nil {
		known.touched[name] = true
	}
}
