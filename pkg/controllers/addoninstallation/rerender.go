package addoninstallation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/apply"
	"github.com/trellis-addons/trellis/pkg/hooks"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/text"
)

// mostNamed is how many objects an event names.
const mostNamed = 5

// tenantOf is whose renderings may share a process: those of one cluster, and of its core add-ons by themselves, since their
// template data holds the cluster's secrets.
func tenantOf(f *facts) string {
	if f.choice.Core {
		return string(f.cluster.UID) + "/core"
	}
	return string(f.cluster.UID)
}

// rendersAnew says once for each value of annotation reconcile-at that what is kept does not count. It has a memory of its
// own: the look at the objects is often over before the content is fetched that the annotation asks for.
func rendersAnew(f *facts) bool {
	anew := isAskedAnew(f)
	f.memory.renderedAnew = f.installation.Annotations[kubermaticv1.AnnotationReconcileAt]
	return anew
}

func isAskedAnew(f *facts) bool {
	return f.memory.renderedAnew != f.installation.Annotations[kubermaticv1.AnnotationReconcileAt]
}

// readIntent has the objects of the intent on record. Rendered again they could be others, such as a certificate that the chart makes.
func readIntent(f *facts) loop.Outcome {
	objects, err := decodeObjects(f.record().Objects)
	if err != nil {
		return failed(err)
	}
	f.objects, f.hooks = objects, f.record().Hooks
	return nil
}

func decodeObjects(encoded []json.RawMessage) ([]*unstructured.Unstructured, error) {
	objects := make([]*unstructured.Unstructured, len(encoded))
	for i, raw := range encoded {
		objects[i] = &unstructured.Unstructured{}
		if err := utiljson.Unmarshal(raw, &objects[i].Object); err != nil {
			return nil, fmt.Errorf("decoding object %d of the record: %w", i, err)
		}
	}
	return objects, nil
}

// compareRendering renders once more, where somebody asked for a look at everything, and tells whether the same comes out.
// What is applied stays as it is.
func (r *Reconciler) compareRendering(ctx context.Context, f *facts, anew bool) {
	record := f.record()
	if !anew && !f.memory.comparing || record == nil || record.Inputs != f.inputs {
		return
	}
	seen := recordedSight(f)
	var outcome loop.Outcome
	if seen.found, outcome = r.lookup(ctx, f); outcome != nil {
		return // the next look asks again
	}
	request, err := r.renderRequest(f, seen)
	if err != nil {
		return
	}
	request.Anew = anew
	rendered, err := r.Renders.Render(ctx, request)
	if f.memory.comparing = errors.Is(err, render.ErrPending); f.memory.comparing {
		return // it wakes the installation, and is kept
	}
	if err != nil {
		ctrl.LoggerFrom(ctx).Info("rendering once more, to compare, did not work", "error", err.Error())
		return
	}
	if len(rendered.Changed) > 0 {
		r.warnOfChanges(f, namesOf(f, rendered.Changed))
		return
	}
	r.compareWithRecord(ctx, f, rendered.Result)
}

// compareWithRecord is for renderings of an earlier process, of which nothing is kept but the record.
func (r *Reconciler) compareWithRecord(ctx context.Context, f *facts, rendered render.Result) {
	again := *f
	again.rendered = rendered
	if r.prepare(&again) != nil || f.record().Holds(apply.ObjectsDigest(again.objects), again.hooks) {
		return
	}
	record, err := r.Records.Load(ctx, f.installation.Namespace, f.owner)
	if err != nil || record == nil || record.Inputs != f.inputs {
		return
	}
	applied, err := decodeObjects(record.Objects)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "comparing a rendering with the record")
		return
	}
	r.warnOfChanges(f, different(digestsOf(applied, record.Hooks), digestsOf(again.objects, again.hooks)))
}

// different names what two renderings do not share, by their digests.
func different(before, after map[string]string) []string {
	names := map[string]bool{}
	for name, digest := range after {
		names[name] = before[name] != digest
	}
	for name := range before {
		_, stays := after[name]
		names[name] = names[name] || !stays
	}
	maps.DeleteFunc(names, func(_ string, differs bool) bool { return !differs })
	return slices.Sorted(maps.Keys(names))
}

// digestsOf are the digests of objects and hooks by what people call them; those that are called the same have theirs in a row. Hooks
// of tests count for nothing.
func digestsOf(objects []*unstructured.Unstructured, run []hooks.Hook) map[string]string {
	digests := map[string]string{}
	for _, object := range objects {
		digests[nameOf(object)] += apply.ObjectsDigest([]*unstructured.Unstructured{object})
	}
	for _, hook := range run {
		if digest := hooks.Digest([]hooks.Hook{hook}); digest != "" {
			digests[hookNameOf(hook)] += digest
		}
	}
	return digests
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

// namesOf says what changed objects are called in the user cluster, where those without a namespace are in the installation's. A
// kind that is not served is named as it was rendered.
func namesOf(f *facts, changed []render.ObjectName) []string {
	names := make([]string, len(changed))
	for i, one := range changed {
		if one.Namespace == "" && isNamespaced(f, one.GVK) {
			one.Namespace = f.installation.Spec.TargetNamespace
		}
		names[i] = one.String()
	}
	return names
}

func isNamespaced(f *facts, kind schema.GroupVersionKind) bool {
	mapping, err := f.connection.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
	return err == nil && mapping.Scope.Name() == meta.RESTScopeNameNamespace
}

// warnOfChanges tells, once for each inputs, that a chart makes something up.
func (r *Reconciler) warnOfChanges(f *facts, changed []string) {
	if len(changed) == 0 || f.memory.changesTold == f.inputs {
		return
	}
	f.memory.changesTold = f.inputs
	r.Recorder.Eventf(f.installation, nil, "Warning", kubermaticv1.EventNonDeterministic, "Render",
		"a second rendering of equal inputs gives something else for %s: what was rendered first stays; make the template depend on "+
			"its inputs only", text.Names(changed, mostNamed))
}
