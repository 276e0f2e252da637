package preview

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trellis-addons/trellis/pkg/values"
)

const (
	// mostChanges and mostValues bound a preview.
	mostChanges = 2000
	mostValues  = 2000
	// mostText is how much of a text is shown, in bytes.
	mostText = 512
	// hidden stands for a number that is secret.
	hidden = "***"
)

// Rendered is an object as it is in the user cluster after a revision. Hook is the template of a hook.
type Rendered struct {
	*unstructured.Unstructured
	Hook string
}

// Shown says what a preview may show.
type Shown struct {
	// Masked says why no leaves are shown; "" if they are.
	Masked string
	// Hide takes secret texts out of names, keys and messages, HideLeaf out of leaves, where data of Secrets is hidden too.
	Hide, HideLeaf func(string) string
}

// AddValues adds merged values with their layers.
func (p *Preview) AddValues(merged map[string]any, origins values.Origins, shown Shown) {
	rows := valueRows{origins: origins, shown: shown}
	rows.add(merged, nil)
	if len(rows.found) > mostValues {
		rows.found, p.Truncated = rows.found[:mostValues], true
	}
	p.Values, p.Masked = rows.found, shown.Masked
}

type valueRows struct {
	origins values.Origins
	shown   Shown
	found   []Value
}

func (r *valueRows) add(content map[string]any, at values.Path) {
	for _, key := range slices.Sorted(maps.Keys(content)) {
		if len(r.found) > mostValues {
			return
		}
		here, value := below(at, key), content[key]
		if inner, isMap := value.(map[string]any); isMap && len(inner) > 0 {
			r.add(inner, here)
			continue
		}
		row := Value{Path: r.shown.path(here), Origin: r.origins[here.String()]}
		if r.shown.Masked == "" {
			row.Value = r.shown.leaf(value)
		}
		r.found = append(r.found, row)
	}
}

// AddObjects compares the objects on record with those of the next revision.
func (p *Preview) AddObjects(before, after []Rendered, shown Shown) {
	p.Masked = shown.Masked
	known := make(map[objectKey]Rendered, len(before))
	for _, one := range before {
		known[keyOf(one)] = one
	}
	found := make([]row, 0, len(after))
	for _, one := range after {
		key := keyOf(one)
		was, isThere := known[key]
		delete(known, key)
		action := ActionCreate
		switch {
		case isThere && reflect.DeepEqual(was.Object, one.Object):
			action = ActionSame
		case isThere:
			action = ActionChange
		}
		found = append(found, row{action, was, one})
	}
	for _, one := range before {
		if _, isLeft := known[keyOf(one)]; isLeft {
			found = append(found, row{ActionRemove, Rendered{}, one})
		}
	}
	p.Objects = make([]Object, len(found))
	left := mostChanges
	for _, action := range []Action{ActionChange, ActionCreate, ActionRemove, ActionSame} { // changes are shown first
		for i, one := range found {
			if one.action == action {
				p.Objects[i] = one.shown(shown, &left)
				p.Counts.add(action)
			}
		}
	}
	p.Truncated = p.Truncated || left < 0
}

// objectKey is what an object is recognised by. A kind keeps its objects when its version changes.
type objectKey struct {
	kind                  schema.GroupKind
	namespace, name, hook string
}

func keyOf(one Rendered) objectKey {
	return objectKey{one.GroupVersionKind().GroupKind(), one.GetNamespace(), one.GetName(), one.Hook}
}

type row struct {
	action     Action
	was, begun Rendered
}

// shown is the row as it is shown. Left counts the changes that may still be shown; below zero some are left out.
func (r row) shown(shown Shown, left *int) Object {
	object := Object{
		APIVersion: r.begun.GetAPIVersion(), Kind: r.begun.GetKind(), Hook: r.begun.Hook, Action: r.action,
		Namespace: shown.Hide(r.begun.GetNamespace()), Name: shown.Hide(r.begun.GetName()),
	}
	if r.begun.GroupVersionKind().GroupKind() == secretKind {
		shown.Masked = "it is a Secret"
	}
	found := differences{shown: shown, left: left}
	switch r.action {
	case ActionCreate:
		found.compare(nil, r.begun.Object, nil)
	case ActionChange:
		found.compare(r.was.Object, r.begun.Object, nil)
	case ActionRemove, ActionSame:
	}
	object.Changes = found.changes
	return object
}

var secretKind = schema.GroupKind{Kind: "Secret"}

type differences struct {
	shown   Shown
	left    *int
	changes []Change
}

// compare adds the leaves that differ. What is not there is nil.
func (d *differences) compare(before, after any, at values.Path) {
	if reflect.DeepEqual(before, after) {
		return
	}
	if was, is, areMaps := both[map[string]any](before, after); areMaps {
		for _, key := range slices.Sorted(maps.Keys(united(was, is))) {
			d.compare(was[key], is[key], below(at, key))
		}
		return
	}
	if was, is, areLists := both[[]any](before, after); areLists {
		for i := range max(len(was), len(is)) {
			d.compare(element(was, i), element(is, i), append(slices.Clip(at), values.Step{Index: i, IsIndex: true}))
		}
		return
	}
	d.add(before, after, at)
}

// both are two values of one type, of which one may be missing; false for others, and if neither has anything inside.
func both[T map[string]any | []any](before, after any) (was, is T, areBoth bool) {
	was, wasOne := before.(T)
	is, isOne := after.(T)
	areBoth = (wasOne || before == nil) && (isOne || after == nil) && len(was)+len(is) > 0
	return was, is, areBoth
}

func united(was, is map[string]any) map[string]any {
	all := maps.Clone(was)
	if all == nil {
		return is
	}
	maps.Copy(all, is)
	return all
}

func (d *differences) add(before, after any, at values.Path) {
	if *d.left--; *d.left < 0 {
		return
	}
	change := Change{Path: d.shown.path(at), Action: ActionChange}
	switch {
	case before == nil:
		change.Action = ActionCreate
	case after == nil:
		change.Action = ActionRemove
	}
	if d.shown.Masked == "" {
		change.Before, change.After = d.shown.leaf(before), d.shown.leaf(after)
	}
	d.changes = append(d.changes, change)
}

func element(list []any, at int) any {
	if at < len(list) {
		return list[at]
	}
	return nil
}

func below(at values.Path, key string) values.Path {
	return append(slices.Clip(at), values.Step{Key: key})
}

// path is a path as it is shown. Secrets are hidden before keys are escaped, since they are searched for as they are.
func (s Shown) path(at values.Path) string {
	shown := slices.Clone(at)
	for i := range shown {
		shown[i].Key = s.Hide(shown[i].Key)
	}
	return s.Hide(shown.String())
}

// leaf is a leaf as it is shown: texts are cut. Lists and maps of values are shown by their leaves.
func (s Shown) leaf(value any) any {
	switch value := value.(type) {
	case nil, bool:
		return value
	case string:
		return cut(s.HideLeaf(value))
	case map[string]any:
		shown := make(map[string]any, len(value))
		for key, inner := range value {
			shown[s.Hide(key)] = s.leaf(inner)
		}
		return shown
	case []any:
		shown := make([]any, min(len(value), mostValues))
		for i := range shown {
			shown[i] = s.leaf(value[i])
		}
		return shown
	}
	if text := fmt.Sprint(value); s.HideLeaf(text) != text {
		return hidden
	}
	return value
}

func cut(text string) string {
	if len(text) <= mostText {
		return text
	}
	return strings.ToValidUTF8(text[:mostText], "") + "…"
}
