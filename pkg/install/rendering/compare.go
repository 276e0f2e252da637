package rendering

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/pkg/install/apply"
	"github.com/trellis-addons/trellis/pkg/install/hooks"
	"github.com/trellis-addons/trellis/pkg/install/revision"
	"github.com/trellis-addons/trellis/pkg/render"
)

// Compare renders the recorded inputs once more, and names the objects that differ. It compares an earlier process's
// rendering by the record, since nothing else is left of it.
func (r *Renderer) Compare(ctx context.Context, q Request) ([]string, error) {
	seen := recordedView(&q)
	var err error
	if seen.found, err = r.lookup(ctx, &q); err != nil {
		return nil, err
	}
	again, err := r.renderAs(ctx, &q, seen)
	if len(again.Changed) > 0 {
		return again.Changed, nil
	}
	if err != nil || q.Installed.Record().Holds(apply.ObjectsDigest(again.Objects), again.Hooks) {
		return nil, err
	}
	record, err := q.Installed.ReadWhole(ctx, q.Installed.Record())
	if err != nil {
		return nil, err
	}
	applied, err := revision.DecodeObjects(record.Objects)
	if err != nil {
		return nil, err
	}
	before, err := contentOf(applied, record.Hooks)
	if err != nil {
		return nil, err
	}
	after, err := contentOf(again.Objects, again.Hooks)
	return different(before, after), err
}

// different names the objects that two renderings do not share.
func different(before, after map[string]any) []string {
	names := map[string]bool{}
	for _, rendering := range []map[string]any{before, after} {
		for name := range rendering {
			if !reflect.DeepEqual(before[name], after[name]) {
				names[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// contentOf are objects and hooks by their displayed names, in the kinds of values that JSON has; those of equal
// names are a list. Hooks of tests are left out.
func contentOf(objects []*unstructured.Unstructured, run []hooks.Hook) (map[string]any, error) {
	named := map[string][]any{}
	for _, object := range objects {
		named[nameOf(object)] = append(named[nameOf(object)], object.Object)
	}
	for _, hook := range run {
		if hooks.Digest([]hooks.Hook{hook}) != "" {
			hook.Run = nil
			named[hookNameOf(hook)] = append(named[hookNameOf(hook)], hook)
		}
	}
	encoded, err := json.Marshal(named)
	if err != nil {
		return nil, fmt.Errorf("encoding objects to compare: %w", err)
	}
	content := map[string]any{}
	if err := json.Unmarshal(encoded, &content); err != nil {
		return nil, fmt.Errorf("decoding objects to compare: %w", err)
	}
	return content, nil
}

func nameOf(object *unstructured.Unstructured) string {
	return fmt.Sprintf("%s %s", object.GetKind(), strings.TrimPrefix(client.ObjectKeyFromObject(object).String(), "/"))
}

func hookNameOf(hook hooks.Hook) string {
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(hook.Object); err != nil {
		return "hook of " + hook.Path
	}
	return fmt.Sprintf("hook %s of %s", nameOf(object), hook.Path)
}

// namesOf are the names of changed objects in the user cluster: those without a namespace are in the installation's.
// An object of a kind that is not served has its rendered name.
func namesOf(q *Request, changed []render.ObjectName) []string {
	names := make([]string, len(changed))
	for i, one := range changed {
		if one.Namespace == "" && isNamespaced(q.Mapper, one.GVK) {
			one.Namespace = q.targetNamespace()
		}
		names[i] = one.String()
	}
	return names
}

func isNamespaced(mapper meta.RESTMapper, kind schema.GroupVersionKind) bool {
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	return err == nil && mapping.Scope.Name() == meta.RESTScopeNameNamespace
}

// asRecorded renders the request, and reports whether the result differs from the record only at random. Then it
// returns the recorded objects. The results of function lookup for the record are unknown by now: it renders with the
// present ones and, if the result differs, without any, as at the first time.
func (r *Renderer) asRecorded(ctx context.Context, q Request) (recorded Result, stays bool, err error) {
	q.Rerender = false
	recorded = q.nothing()
	seen := recordedView(&q)
	if seen.found, err = r.lookup(ctx, &q); err != nil {
		return recorded, false, err
	}
	record, err := q.Installed.ReadWhole(ctx, q.Installed.Record())
	if err != nil {
		return recorded, false, err
	}
	recorded.Hooks = record.Hooks
	if recorded.Objects, err = revision.DecodeObjects(record.Objects); err != nil {
		return recorded, false, err
	}
	stays, err = r.comesOutAs(ctx, &q, record, &recorded, seen)
	if !stays && err == nil && len(seen.found) > 0 {
		seen.found = nil
		stays, err = r.comesOutAs(ctx, &q, record, &recorded, seen)
	}
	return recorded, stays, err
}

// comesOutAs reports whether a rendering differs from the record only at random, or not at all. Then it gives the
// recorded result the rendering's chart. If they differ, it renders once more, at another moment, to find the random
// parts.
func (r *Renderer) comesOutAs(ctx context.Context, q *Request, record *revision.Record, recorded *Result, seen view) (bool, error) {
	once, err := r.renderAs(ctx, q, seen)
	if err != nil {
		return false, err
	}
	recorded.Chart, recorded.Finalized = once.Chart, once.Finalized
	if record.Holds(apply.ObjectsDigest(once.Objects), once.Hooks) {
		return true, nil
	}
	seen.otherMoment = true
	twice, err := r.renderAs(ctx, q, seen)
	if err != nil {
		return false, err
	}
	return differByChance(*recorded, once, twice)
}

// differByChance reports whether the record differs from a rendering only where two renderings differ.
func differByChance(recorded, once, twice Result) (bool, error) {
	var contents [3]map[string]any
	var failures [3]error
	for i, one := range []Result{recorded, once, twice} {
		contents[i], failures[i] = contentOf(one.Objects, one.Hooks)
	}
	if err := errors.Join(failures[:]...); err != nil {
		return false, err
	}
	return byChance(contents[0], contents[1], contents[2]), nil
}

// byChance reports whether a recorded value differs from a rendering's only at paths at which another rendering also
// differs from it.
func byChance(recorded, once, twice any) bool {
	if reflect.DeepEqual(recorded, once) {
		return true
	}
	switch once := once.(type) {
	case map[string]any:
		recorded, isMap := recorded.(map[string]any)
		twice, areMaps := twice.(map[string]any)
		if isMap && areMaps {
			return membersByChance(recorded, once, twice)
		}
	case []any:
		recorded, isList := recorded.([]any)
		twice, areLists := twice.([]any)
		if isList && areLists && len(once) == len(twice) {
			return len(recorded) == len(once) && elementsByChance(recorded, once, twice)
		}
	}
	return !reflect.DeepEqual(once, twice)
}

func membersByChance(recorded, once, twice map[string]any) bool {
	varies := false // the keys are random
	for key, value := range once {
		other, isThere := twice[key]
		before, was := recorded[key]
		if varies = varies || !isThere; !isThere {
			continue
		}
		if !was || !byChance(before, value, other) {
			return false
		}
	}
	for key := range recorded {
		_, stays := once[key]
		_, comesBack := twice[key]
		if !stays && !comesBack && !varies {
			return false
		}
	}
	return true
}

func elementsByChance(recorded, once, twice []any) bool {
	for i := range once {
		if !byChance(recorded[i], once[i], twice[i]) {
			return false
		}
	}
	return true
}
