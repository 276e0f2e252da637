package addoninstallation

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
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/apply"
	"github.com/trellis-addons/trellis/pkg/hooks"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/ownership"
	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/revision"
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

// compareRendering renders once more, where somebody asked for a look at everything, and tells whether the same comes out.
// What is applied stays as it is.
func (r *Reconciler) compareRendering(ctx context.Context, f *facts, anew bool) {
	record := f.Record()
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
	again, outcome := r.prepare(f, rendered)
	if outcome != nil || f.Record().Holds(apply.ObjectsDigest(again.objects), again.hooks) {
		return
	}
	record, err := r.Records.Load(ctx, f.installation.Namespace, f.Owner)
	if err != nil || record == nil || record.Inputs != f.inputs {
		return
	}
	applied, err := revision.DecodeObjects(record.Objects)
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
	mapping, err := f.Connection.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
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

// Renderings that nobody asked for: only served kinds, the Kubernetes version or the cluster's data are others. What chance alone
// makes of them stays as it is (ADR 38).

// staysAsRecorded renders as what is on record was, and says whether only chance would change it. Then the objects are those on
// record. What function lookup found for the record is not known any more: what it finds now, or nothing, as at the first time.
func (r *Reconciler) staysAsRecorded(ctx context.Context, f *facts) (bool, loop.Outcome) {
	seen := recordedSight(f)
	var outcome loop.Outcome
	if seen.found, outcome = r.lookup(ctx, f); outcome != nil {
		return false, outcome
	}
	record, err := f.ReadWhole(ctx, f.Record())
	if err != nil {
		return false, failed(err)
	}
	recorded := prepared{hooks: record.Hooks}
	if recorded.objects, err = revision.DecodeObjects(record.Objects); err != nil {
		return false, failed(err)
	}
	stays, outcome := r.comesOutAs(ctx, f, record, &recorded, seen)
	if !stays && outcome == nil && len(seen.found) > 0 {
		seen.found = nil
		stays, outcome = r.comesOutAs(ctx, f, record, &recorded, seen)
	}
	if stays {
		f.use(recorded)
	}
	return stays, outcome
}

// comesOutAs says whether a rendering differs by chance only from what is on record, if at all. Where they differ it renders once more,
// at another moment, to learn what chance makes.
func (r *Reconciler) comesOutAs(
	ctx context.Context, f *facts, record *revision.Record, recorded *prepared, seen sight,
) (bool, loop.Outcome) {
	once, outcome := r.renderAs(ctx, f, seen)
	if outcome != nil {
		return false, outcome
	}
	recorded.chart = once.chart
	if record.Holds(apply.ObjectsDigest(once.objects), once.hooks) {
		return true, nil
	}
	seen.otherMoment = true
	twice, outcome := r.renderAs(ctx, f, seen)
	if outcome != nil {
		return false, outcome
	}
	byChance, err := differByChance(*recorded, once, twice)
	if err != nil {
		return false, failed(err)
	}
	return byChance, nil
}

// renderAs renders and prepares the objects with a view.
func (r *Reconciler) renderAs(ctx context.Context, f *facts, seen sight) (prepared, loop.Outcome) {
	request, err := r.renderRequest(f, seen)
	if err != nil {
		return prepared{}, failed(err)
	}
	rendered, err := r.Renders.Render(ctx, request)
	if err != nil {
		return prepared{}, renderOutcome(err)
	}
	return r.prepare(f, rendered.Result)
}

// differByChance says whether what is on record differs from a rendering only where two renderings differ.
func differByChance(recorded, once, twice prepared) (bool, error) {
	var contents [3]map[string]any
	var failures [3]error
	for i, one := range []prepared{recorded, once, twice} {
		contents[i], failures[i] = one.content()
	}
	if err := errors.Join(failures[:]...); err != nil {
		return false, err
	}
	return byChance(contents[0], contents[1], contents[2]), nil
}

// content are objects and hooks by name, in the kinds of values that JSON has. Hooks of tests count for nothing.
func (p prepared) content() (map[string]any, error) {
	named := map[string]any{}
	for _, object := range p.objects {
		named[ownership.KeyOf(object).String()] = object.Object
	}
	for _, hook := range p.hooks {
		if hooks.Digest([]hooks.Hook{hook}) != "" {
			hook.Run = nil
			named[hookNameOf(hook)] = hook
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

// byChance says whether a value on record differs from a rendering's only at paths at which another rendering differs from it too.
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
	varies := false // keys are made up
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
