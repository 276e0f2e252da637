package revision

import (
	"context"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// rollStands is how long a list that many share is believed.
const rollStands = 10 * time.Second

// roll tells the revisions of many names in a namespace from one list that is at most a moment old: installations that begin
// together, or after a restart, ask once for all of them. It does not answer for names that were written since. It may be used by
// many goroutines.
type roll struct {
	now     func() time.Time
	flights singleflight.Group
	mutex   sync.Mutex
	pages   map[string]*page
}

// page is the list of one namespace; while it is being made it collects what is written.
type page struct {
	begun   time.Time
	listed  bool
	entries map[string][]int
	// partial lists do not have every name.
	partial bool
	// touched are names that were written since the list began.
	touched map[string]bool
}

// lister lists revisions by name; partial says that there are more than it lists.
type lister func() (revisions map[string][]int, partial bool, err error)

// look tells what the list has of a name, and whether that can be relied on.
func (r *roll) look(ctx context.Context, namespace, name string, list lister) (revisions []int, sure bool, err error) {
	known := r.standing(namespace)
	if known == nil {
		if known, err = r.await(ctx, namespace, list); err != nil {
			return nil, false, err
		}
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return known.entries[name], !known.partial && !known.touched[name], nil
}

// await makes a list, or waits for the one that is being made. Whoever waited is answered from it, however long it took.
func (r *roll) await(ctx context.Context, namespace string, list lister) (*page, error) {
	flight := r.flights.DoChan(namespace, func() (any, error) {
		if known := r.standing(namespace); known != nil { // somebody listed it between the look and the flight
			return known, nil
		}
		return r.take(namespace, list)
	})
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case landed := <-flight:
		if landed.Err != nil {
			return nil, landed.Err
		}
		return landed.Val.(*page), nil
	}
}

// standing is the list of a namespace, unless it is too old.
func (r *roll) standing(namespace string) *page {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	known := r.pages[namespace]
	if known == nil || !known.listed || r.now().Sub(known.begun) >= rollStands {
		return nil
	}
	return known
}

// take lists a namespace anew, and drops what is old of others.
func (r *roll) take(namespace string, list lister) (*page, error) {
	made := r.begin(namespace)
	entries, partial, err := list()
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if err != nil {
		delete(r.pages, namespace)
		return nil, err
	}
	made.entries, made.partial, made.listed = entries, partial, true
	return made, nil
}

func (r *roll) begin(namespace string) *page {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	now := r.now()
	maps.DeleteFunc(r.pages, func(_ string, known *page) bool { return known.listed && now.Sub(known.begun) >= rollStands })
	if r.pages == nil {
		r.pages = map[string]*page{}
	}
	r.pages[namespace] = &page{begun: now, touched: map[string]bool{}}
	return r.pages[namespace]
}

// touch says that a name was written, or may have been.
func (r *roll) touch(namespace, name string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if known := r.pages[namespace]; known != nil {
		known.touched[name] = true
	}
}
