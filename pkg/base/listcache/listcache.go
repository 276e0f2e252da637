// Package listcache answers for many names of a namespace from one list that is at most a moment old: callers that
// begin together, or after a restart, list once for all of them. It never answers for a name that was written since
// the list began.
package listcache

import (
	"context"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// maxAge is how long a list is used.
const maxAge = 10 * time.Second

// Lists are the revisions of names, by namespace. They may be used by many goroutines.
type Lists struct {
	now         func() time.Time
	flights     singleflight.Group
	mutex       sync.Mutex
	byNamespace map[string]*list
}

// list is the list of one namespace; while it is being read it collects writes.
type list struct {
	begun   time.Time
	made    bool
	entries map[string][]int
	// partial lists do not have every name.
	partial bool
	// changed are names that were written since the list began.
	changed map[string]bool
}

// Lister lists revisions by name; partial says that there are more than it lists.
type Lister func() (revisions map[string][]int, partial bool, err error)

// New has no lists yet; now returns the time.
func New(now func() time.Time) *Lists { return &Lists{now: now} }

// Find returns the list's revisions of a name, and whether that is reliable.
func (l *Lists) Find(ctx context.Context, namespace, name string, lister Lister) (revisions []int, sure bool, err error) {
	known := l.current(namespace)
	if known == nil {
		if known, err = l.await(ctx, namespace, lister); err != nil {
			return nil, false, err
		}
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return known.entries[name], !known.partial && !known.changed[name], nil
}

// Changed says that a name was written, or may have been.
func (l *Lists) Changed(namespace, name string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if known := l.byNamespace[namespace]; known != nil {
		known.changed[name] = true
	}
}

// await makes a list, or waits for the one that is being read, and answers from it.
func (l *Lists) await(ctx context.Context, namespace string, lister Lister) (*list, error) {
	flight := l.flights.DoChan(namespace, func() (any, error) {
		if known := l.current(namespace); known != nil { // it was made since the caller checked
			return known, nil
		}
		return l.renew(namespace, lister)
	})
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case landed := <-flight:
		if landed.Err != nil {
			return nil, landed.Err
		}
		return landed.Val.(*list), nil
	}
}

// current is the list of a namespace, unless it is too old.
func (l *Lists) current(namespace string) *list {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	known := l.byNamespace[namespace]
	if known == nil || !known.made || l.now().Sub(known.begun) >= maxAge {
		return nil
	}
	return known
}

// renew lists a namespace, and drops the expired lists of others.
func (l *Lists) renew(namespace string, lister Lister) (*list, error) {
	renewed := l.begin(namespace)
	entries, partial, err := lister()
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if err != nil {
		delete(l.byNamespace, namespace)
		return nil, err
	}
	renewed.entries, renewed.partial, renewed.made = entries, partial, true
	return renewed, nil
}

func (l *Lists) begin(namespace string) *list {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	now := l.now()
	maps.DeleteFunc(l.byNamespace, func(_ string, known *list) bool {
		return known.made && now.Sub(known.begun) >= maxAge
	})
	if l.byNamespace == nil {
		l.byNamespace = map[string]*list{}
	}
	l.byNamespace[namespace] = &list{begun: now, changed: map[string]bool{}}
	return l.byNamespace[namespace]
}
