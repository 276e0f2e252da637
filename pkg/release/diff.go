package release

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/trellis-addons/trellis/pkg/ownership"
)

// Difference is what differs between two revisions of an installation. It names objects and fields, and never repeats what they
// hold: a Secret's values, a password in a value or in an argument are in none of its texts.
type Difference struct {
	// From and To are the revisions' numbers; From is 0 where there was none before.
	From, To int
	// Version, Artifact and Chart are the add-on's version, the content's digest and "name version" of a Helm chart; nil where
	// they are the same.
	Version, Artifact, Chart *Change
	// Added and Removed objects, by their text.
	Added, Removed []ownership.Key
	// Changed objects, with the fields that differ.
	Changed []ObjectChange
	// AddedHooks, RemovedHooks and ChangedHooks are the same for hooks; how they ran does not count.
	AddedHooks, RemovedHooks []HookKey
	ChangedHooks             []HookChange
	// Values are the paths of values that differ, Origins those that another layer sets now.
	Values  []string
	Origins []OriginChange
}

// Change is one word that became another; "" is none.
type Change struct{ From, To string }

// ObjectChange is an object that both revisions have, with the paths of fields that differ: ".spec.replicas",
// ".spec.containers[name=web].image", `.data["a.b"]`. Where all below a field is new or gone, the field alone is named.
type ObjectChange struct {
	Key    ownership.Key
	Fields []string
}

// OriginChange is a value that another layer sets than before.
type OriginChange struct{ Path, From, To string }

// Diff is what differs between two revisions, of which from may be nil. It is pure, and the same for the same records. The error is
// a LightError, or says that a record's object is no JSON.
func Diff(from, to *Record) (Difference, error) {
	if from == nil {
		from = &Record{}
	}
	for _, record := range []*Record{from, to} {
		if record.stored.light {
			return Difference{}, &LightError{Secret: headName(record.Owner(), record.Revision)}
		}
	}
	found := Difference{
		From: from.Revision, To: to.Revision, Version: changed(from.Version, to.Version),
		Artifact: changed(from.Artifact.Digest, to.Artifact.Digest), Chart: changed(chartText(from.Helm), chartText(to.Helm)),
	}
	before, err := objectsByKey(from)
	if err != nil {
		return Difference{}, err
	}
	after, err := objectsByKey(to)
	if err != nil {
		return Difference{}, err
	}
	found.compareObjects(before, after)
	if err := found.compareHooks(from, to); err != nil {
		return Difference{}, err
	}
	found.Values = differing("", loose(from.Values), loose(to.Values), nil)
	for _, path := range union(from.Origins, to.Origins) {
		if from.Origins[path] != to.Origins[path] {
			found.Origins = append(found.Origins, OriginChange{Path: path, From: from.Origins[path], To: to.Origins[path]})
		}
	}
	return found, nil
}

// IsEmpty says whether nothing differs but the numbers.
func (d Difference) IsEmpty() bool {
	d.From, d.To = 0, 0
	return reflect.DeepEqual(d, Difference{})
}

func changed(from, to string) *Change {
	if from == to {
		return nil
	}
	return &Change{From: from, To: to}
}

func chartText(helm *HelmRelease) string {
	if helm == nil {
		return ""
	}
	return helm.ChartName + " " + helm.ChartVersion
}

func objectsByKey(record *Record) (map[ownership.Key]map[string]any, error) {
	objects := make(map[ownership.Key]map[string]any, len(record.Objects))
	for i, raw := range record.Objects {
		object := &unstructured.Unstructured{}
		if err := utiljson.Unmarshal(raw, &object.Object); err != nil {
			return nil, fmt.Errorf("decoding object %d of revision %d: it is no JSON", i, record.Revision) // its words may quote it
		}
		objects[ownership.KeyOf(object)] = object.Object
	}
	return objects, nil
}

func (d *Difference) compareObjects(before, after map[ownership.Key]map[string]any) {
	keys := maps.Clone(before)
	maps.Copy(keys, after)
	sorted := slices.SortedFunc(maps.Keys(keys), func(a, b ownership.Key) int { return strings.Compare(a.String(), b.String()) })
	for _, key := range sorted {
		old, had := before[key]
		now, has := after[key]
		switch {
		case !had:
			d.Added = append(d.Added, key)
		case !has:
			d.Removed = append(d.Removed, key)
		default:
			if fields := differing("", old, now, nil); len(fields) > 0 {
				d.Changed = append(d.Changed, ObjectChange{Key: key, Fields: fields})
			}
		}
	}
}

// loose makes values comparable: one side may have been decoded, the other put together by hand.
func loose(values map[string]any) any {
	plain := map[string]any{}
	if text, err := json.Marshal(values); err == nil && len(values) > 0 {
		_ = utiljson.Unmarshal(text, &plain) // it was JSON a moment ago
	}
	return plain
}

// differing appends the paths at which two JSON values differ.
func differing(path string, before, after any, found []string) []string {
	oldMap, wasMap := before.(map[string]any)
	newMap, isMap := after.(map[string]any)
	if wasMap && isMap {
		return differingMaps(path, oldMap, newMap, found)
	}
	oldList, wasList := before.([]any)
	newList, isList := after.([]any)
	if wasList && isList {
		if old, now := byName(oldList), byName(newList); old != nil && now != nil {
			return differingNamed(path, old, now, found)
		}
		if len(oldList) == len(newList) {
			for i := range oldList {
				found = differing(path+"["+strconv.Itoa(i)+"]", oldList[i], newList[i], found)
			}
			return found
		}
	}
	if !reflect.DeepEqual(before, after) {
		found = append(found, path)
	}
	return found
}

func differingMaps(path string, before, after map[string]any, found []string) []string {
	for _, key := range union(before, after) {
		old, had := before[key]
		now, has := after[key]
		next := path + step(key)
		if had != has {
			found = append(found, next)
			continue
		}
		found = differing(next, old, now, found)
	}
	return found
}

func differingNamed(path string, before, after map[string]any, found []string) []string {
	for _, name := range union(before, after) {
		next := path + "[name=" + name + "]"
		if before[name] == nil || after[name] == nil {
			found = append(found, next)
			continue
		}
		found = differing(next, before[name], after[name], found)
	}
	return found
}

// byName are the items of a list of objects that each have a name of their own; nil for other lists.
func byName(list []any) map[string]any {
	items := make(map[string]any, len(list))
	for _, item := range list {
		fields, _ := item.(map[string]any)
		name, _ := fields["name"].(string)
		if name == "" || items[name] != nil {
			return nil
		}
		items[name] = item
	}
	return items
}

// step is a key as part of a path.
func step(key string) string {
	if strings.ContainsAny(key, `."[]`) {
		return "[" + strconv.Quote(key) + "]"
	}
	return "." + key
}

func union[V any](a, b map[string]V) []string {
	keys := make(map[string]bool, len(a)+len(b))
	for key := range a {
		keys[key] = true
	}
	for key := range b {
		keys[key] = true
	}
	return slices.Sorted(maps.Keys(keys))
}
