package rendering

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/pkg/apply"
	"github.com/trellis-addons/trellis/pkg/hooks"
	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/revision"
)

// Compare renders what is on record once more, and names the objects that come out otherwise. What
// an earlier process rendered is compared with the record, since nothing else is left of it.
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

// different names what two renderings do not share.
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

// contentOf are objects and hooks by what people call them, in the kinds of values that JSON has;
// those that are called the same are a list. Hooks of tests count for nothing.
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

// namesOf says what changed objects are called in the user cluster, where those without a namespace
// are in the installation's. A kind that is not served is named as it was rendered.
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
