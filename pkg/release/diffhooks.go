package release

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/trellis-addons/trellis/pkg/ownership"
)

// HookKey is a hook by the path of its template and its object, and by its place among those of the template that have the same
// object, from 0: a name may be there for several events.
type HookKey struct {
	Path   string
	Object ownership.Key
	Place  int
}

func (k HookKey) compare(other HookKey) int {
	return cmp.Or(strings.Compare(k.Path, other.Path), strings.Compare(k.Object.String(), other.Object.String()),
		cmp.Compare(k.Place, other.Place))
}

// HookChange is a hook that both revisions have, with what differs: ".events", ".weight", ".deletePolicies", ".logPolicies", and
// paths of its object's fields, such as ".object.spec.template".
type HookChange struct {
	Key    HookKey
	Fields []string
}

func (d *Difference) compareHooks(from, to *Record) error {
	before, err := hooksByKey(from)
	if err != nil {
		return err
	}
	after, err := hooksByKey(to)
	if err != nil {
		return err
	}
	keys := maps.Clone(before)
	maps.Copy(keys, after)
	for _, key := range slices.SortedFunc(maps.Keys(keys), HookKey.compare) {
		old, had := before[key]
		now, has := after[key]
		switch {
		case !had:
			d.AddedHooks = append(d.AddedHooks, key)
		case !has:
			d.RemovedHooks = append(d.RemovedHooks, key)
		default:
			if fields := differing("", old, now, nil); len(fields) > 0 {
				d.ChangedHooks = append(d.ChangedHooks, HookChange{Key: key, Fields: fields})
			}
		}
	}
	return nil
}

// hooksByKey are hooks as JSON values. Events and policies have no order that counts.
func hooksByKey(record *Record) (map[HookKey]map[string]any, error) {
	hooks := make(map[HookKey]map[string]any, len(record.Hooks))
	for i := range record.Hooks {
		hook := &record.Hooks[i]
		object := &unstructured.Unstructured{}
		if err := utiljson.Unmarshal(hook.Object, &object.Object); err != nil {
			return nil, fmt.Errorf("decoding hook %d of revision %d: it is no JSON", i, record.Revision) // its words may quote it
		}
		key := HookKey{Path: hook.Path, Object: ownership.KeyOf(object)}
		for hooks[key] != nil {
			key.Place++
		}
		hooks[key] = map[string]any{
			"object": object.Object, "weight": hook.Weight, "events": sortedText(hook.Events),
			"deletePolicies": sortedText(hook.DeletePolicies), "logPolicies": sortedText(hook.LogPolicies),
		}
	}
	return hooks, nil
}

func sortedText(words []string) string { return strings.Join(slices.Sorted(slices.Values(words)), ",") }
