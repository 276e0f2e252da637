package fleet

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// stored is what a cluster has in etcd, by the keys below its prefix.
type stored map[string]storedValue

type storedValue struct {
	Revision int64  `json:"revision"`
	Value    []byte `json:"value"`
}

// etcdKey is a key as etcd answers it.
type etcdKey struct {
	Key      []byte `json:"key"`
	Value    []byte `json:"value"`
	Revision int64  `json:"mod_revision,string"`
}

// comparison is a cluster held against what it had.
type comparison struct {
	// undo are the parts of transactions that make the cluster as it was.
	undo []map[string]any
	// left says what is new, changed or missing.
	left []string
	// revisions are those of all objects that the API server knows, sorted.
	revisions []int64
}

// changesByItself holds keys that API servers and controllers write all the time: leases that say who lives, and
// what services have of the addresses there are. They are left as they are.
func changesByItself(key string) bool {
	return strings.HasPrefix(key, "/masterleases/") || strings.HasPrefix(key, "/ranges/") ||
		strings.HasPrefix(key, "/leases/kube-node-lease/") || strings.HasPrefix(key, "/leases/kube-system/apiserver-")
}

// isEvent holds keys of what a controller may still write after all that it writes of is gone. They are removed, and
// not waited for.
func isEvent(key string) bool { return strings.HasPrefix(key, "/events/") }

// comesFirst holds keys of what makes an API server or a controller write: that goes before what they write.
func comesFirst(key string) bool {
	return strings.HasPrefix(key, "/namespaces/") || strings.HasPrefix(key, "/apiextensions.k8s.io/")
}

// readAll is all that the cluster has.
func (l *lent) readAll(ctx context.Context) (stored, error) {
	found, err := l.keys(ctx, false)
	if err != nil {
		return nil, err
	}
	all := stored{}
	for _, one := range found {
		if key := l.relative(one); !changesByItself(key) && !isEvent(key) {
			all[key] = storedValue{Revision: one.Revision, Value: one.Value}
		}
	}
	return all, nil
}

func (l *lent) keys(ctx context.Context, isOnlyKeys bool) ([]etcdKey, error) {
	var found struct{ Kvs []etcdKey }
	err := CallEtcd(ctx, l.Etcd, "range", map[string]any{
		"key": []byte(l.Prefix + "/"), "range_end": []byte(l.Prefix + string(rune('/'+1))), "keys_only": isOnlyKeys,
	}, &found)
	return found.Kvs, err
}

func (l *lent) relative(one etcdKey) string { return strings.TrimPrefix(string(one.Key), l.Prefix) }

// compare holds what the cluster has now against what it had.
func (l *lent) compare(ctx context.Context) (comparison, error) {
	now, err := l.keys(ctx, true)
	if err != nil {
		return comparison{}, err
	}
	var c comparison
	missing := maps.Clone(l.Stored)
	var first, then, changed []string
	for _, one := range now {
		key := l.relative(one)
		had, isKnown := l.Stored[key]
		delete(missing, key)
		switch {
		case changesByItself(key):
			continue
		case isEvent(key):
			then = append(then, key)
			continue
		case isKnown && had.Revision != one.Revision:
			changed = append(changed, key)
		case isKnown:
		case comesFirst(key):
			first = append(first, key)
		default:
			then = append(then, key)
		}
		if !isKnown {
			c.left = append(c.left, key+" is new")
		}
		c.revisions = append(c.revisions, one.Revision)
	}
	slices.Sort(c.revisions)
	for _, key := range append(first, then...) {
		c.undo = append(c.undo, map[string]any{"request_delete_range": map[string]any{"key": []byte(l.Prefix + key)}})
	}
	for key := range missing {
		c.putBack(l, key, "is missing")
	}
	return c, l.compareValues(ctx, &c, changed)
}

// compareValues puts back what of the keys has another value. One that was put back before has another revision
// alone.
func (l *lent) compareValues(ctx context.Context, c *comparison, keys []string) error {
	for some := range slices.Chunk(keys, PutsInEachTransaction) {
		asked := make([]map[string]any, len(some))
		for i, key := range some {
			asked[i] = map[string]any{"request_range": map[string]any{"key": []byte(l.Prefix + key)}}
		}
		var answer struct {
			Responses []struct {
				Range struct{ Kvs []etcdKey } `json:"response_range"`
			}
		}
		if err := CallEtcd(ctx, l.Etcd, "txn", map[string]any{"success": asked}, &answer); err != nil {
			return err
		}
		for i, response := range answer.Responses {
			if kvs := response.Range.Kvs; len(kvs) == 0 || !slices.Equal(kvs[0].Value, l.Stored[some[i]].Value) {
				c.putBack(l, some[i], "is changed")
			}
		}
	}
	return nil
}

func (c *comparison) putBack(l *lent, key, why string) {
	c.left = append(c.left, key+" "+why)
	c.undo = append(c.undo, Record{Key: []byte(l.Prefix + key), Value: l.Stored[key].Value}.Put())
}

// write has etcd do the parts of transactions in their order.
func (l *lent) write(ctx context.Context, parts []map[string]any) error {
	for some := range slices.Chunk(parts, PutsInEachTransaction) {
		var answer struct{ Succeeded bool }
		if err := CallEtcd(ctx, l.Etcd, "txn", map[string]any{"success": some}, &answer); err != nil {
			return err
		}
		if !answer.Succeeded {
			return fmt.Errorf("etcd did not take what cluster %q had", l.Options.Name)
		}
	}
	return nil
}
