package fieldsets

import (
	"encoding/json"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// Merge computes the result of server-side apply for a live object, without its schema: items of a list are
// distinguished by the keys that managers own, and a list without such keys is replaced.
type Merge struct {
	live, wanted map[string]any
	ours, others *fieldpath.Set
	keys         map[*fieldpath.Set][]string
}

// NewMerge is for the content of an object. The manager is ours; all other entries belong to others.
func NewMerge(live, wanted map[string]any, managed []metav1.ManagedFieldsEntry, manager string) (*Merge, error) {
	merge := &Merge{
		live: content(live), wanted: content(wanted), ours: fieldpath.NewSet(), others: fieldpath.NewSet(), keys: map[*fieldpath.Set][]string{},
	}
	for i := range managed {
		if managed[i].FieldsV1 == nil {
			continue
		}
		set, err := Read(managed[i].FieldsV1.GetRawBytes())
		if err != nil {
			return nil, err
		}
		if IsApplied(&managed[i], manager) {
			merge.ours = set
		} else {
			merge.others = merge.others.Union(set)
		}
	}
	return merge, nil
}

// IsApplied says whether an entry has the fields that a manager applies.
func IsApplied(entry *metav1.ManagedFieldsEntry, manager string) bool {
	return entry.Manager == manager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == ""
}

// NotContent are the top-level fields that a Merge does not change.
var NotContent = []string{"apiVersion", "kind", "metadata", "status"}

func content(object map[string]any) map[string]any {
	object = maps.Clone(object)
	for _, field := range NotContent {
		delete(object, field)
	}
	return object
}

// Surplus are the topmost live fields that stay although the wanted object lacks them: others own them, or no manager
// does.
func (m *Merge) Surplus() []fieldpath.Path {
	walk := merging{left: fieldpath.NewSet(), keys: m.keys}
	walk.object(m.live, m.wanted, spot{ours: m.ours, others: m.others})
	return walk.surplus
}

// Without is the merged content without some of the surplus.
func (m *Merge) Without(left *fieldpath.Set) map[string]any {
	walk := merging{left: left, keys: m.keys}
	return walk.object(m.live, m.wanted, spot{ours: m.ours, others: m.others})
}

// spot is a place in an object, with the fields below it.
type spot struct {
	path         fieldpath.Path
	ours, others *fieldpath.Set
}

func (s spot) at(element fieldpath.PathElement) (below spot, ours, others bool) {
	below = spot{append(s.path.Copy(), element), s.ours.WithPrefix(element), s.others.WithPrefix(element)}
	return below, s.ours.Members.Has(element) || !below.ours.Empty(), s.others.Members.Has(element) || !below.others.Empty()
}

type merging struct {
	left    *fieldpath.Set
	surplus []fieldpath.Path
	keys    map[*fieldpath.Set][]string
}

func (m *merging) object(live, wanted map[string]any, at spot) map[string]any {
	merged := maps.Clone(wanted)
	if merged == nil {
		merged = map[string]any{}
	}
	for name, was := range live {
		now := wanted[name] // a null is no value: server-side apply does not change the live one
		if result, stays := m.field(was, now, now != nil, at, fieldpath.PathElement{FieldName: &name}); stays {
			merged[name] = result
		}
	}
	return merged
}

// field merges a live field, or item, with the wanted one. The write removes what only we own.
func (m *merging) field(was, now any, wants bool, at spot, element fieldpath.PathElement) (result any, stays bool) {
	below, ours, others := at.at(element)
	isAtomic := (ours || others) && below.ours.Empty() && below.others.Empty()
	if wants {
		return m.both(was, now, below, isAtomic), true
	}
	if ours && !others || m.left.Has(below.path) {
		return nil, false
	}
	found := append(m.surplus, below.path)
	if ours && !isAtomic {
		was = m.both(was, nil, below, false)
	}
	m.surplus = found
	return was, true
}

func (m *merging) both(was, now any, at spot, isAtomic bool) any {
	switch before := was.(type) {
	case map[string]any:
		if after, is := now.(map[string]any); (is || now == nil) && !isAtomic {
			return m.object(before, after, at)
		}
	case []any:
		if after, is := now.([]any); (is || now == nil) && !isAtomic {
			return m.list(before, after, at)
		}
	}
	if now == nil {
		return was
	}
	return now
}

func (m *merging) list(live, wanted []any, at spot) any {
	names := m.itemKeys(at.ours)
	if len(names) == 0 {
		names = m.itemKeys(at.others)
	}
	if len(names) == 0 {
		if wanted == nil {
			return live
		}
		return wanted
	}
	places := make(map[string]int, len(wanted))
	for i, item := range wanted {
		places[keyOf(item, names, "")] = i
	}
	merged, used := []any{}, map[int]bool{}
	for _, was := range live {
		element := elementOf(was, names)
		place, wants := places[keyOf(was, names, "")]
		for next := 0; next < len(names) && !wants; next++ { // a part of the key may be a default
			place, wants = places[keyOf(was, names, names[next])]
		}
		var now any
		if wants {
			now, used[place] = withKeys(wanted[place], was, names), true
		}
		if result, stays := m.field(was, now, wants, at, element); stays {
			merged = append(merged, withKeys(result, was, names))
		}
	}
	for i, item := range wanted {
		if !used[i] {
			merged = append(merged, item)
		}
	}
	return merged
}

// maxItemKeys is more keys than any real list has. A list with more is replaced whole.
const maxItemKeys = 8

// itemKeys are the names of the fields that distinguish items of a list.
func (m *merging) itemKeys(set *fieldpath.Set) (names []string) {
	if known, found := m.keys[set]; found {
		return known
	}
	set.Iterate(func(path fieldpath.Path) { // can't be left early, so each set is read once
		if path[0].Key == nil || len(names) > 0 || len(*path[0].Key) > maxItemKeys {
			return
		}
		for _, field := range *path[0].Key {
			names = append(names, field.Name)
		}
	})
	if !set.Empty() {
		m.keys[set] = names
	}
	return names
}

func elementOf(item any, names []string) fieldpath.PathElement {
	fields, _ := item.(map[string]any)
	key := make(value.FieldList, 0, len(names))
	for _, name := range names {
		key = append(key, value.Field{Name: name, Value: value.NewValueInterface(fields[name])})
	}
	key.Sort()
	return fieldpath.PathElement{Key: &key}
}

// keyOf is a text for the key of an item, without one of its fields.
func keyOf(item any, names []string, without string) string {
	fields, _ := item.(map[string]any)
	key := make(map[string]any, len(names))
	for _, name := range names {
		if held, found := fields[name]; found && name != without {
			key[name] = held
		}
	}
	text, _ := json.Marshal(key) // it was JSON before
	return string(text)
}

// withKeys is an item with the key of the live one, of which a part may be a default.
func withKeys(item, was any, names []string) any {
	fields, isObject := item.(map[string]any)
	before, wasObject := was.(map[string]any)
	if !isObject || !wasObject {
		return item
	}
	fields = maps.Clone(fields)
	for _, name := range names {
		if _, has := fields[name]; !has && before[name] != nil {
			fields[name] = before[name]
		}
	}
	return fields
}
