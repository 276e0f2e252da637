package apply_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/apply"
	"github.com/trellis-addons/trellis/pkg/ownership"
)

// definition is a CustomResourceDefinition of the test's group; version is a version of it besides v1.
func definition(kind, scope, version string) string {
	second := ""
	if version != "" {
		second = "\n  - {name: " + version + ", served: true, storage: false, schema: {openAPIV3Schema: {type: object, " +
			"x-kubernetes-preserve-unknown-fields: true}}}"
	}
	plural := strings.ToLower(kind) + "s"
	return `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ` + plural + `.NAME.example.com}
spec:
  group: NAME.example.com
  names: {kind: ` + kind + `, plural: ` + plural + `}
  scope: ` + scope + `
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}` + second
}

func custom(kind, version, name string) string {
	return fmt.Sprintf("apiVersion: NAME.example.com/%s\nkind: %s\nmetadata: {name: %s}\nspec: {size: 3}", version, kind, name)
}

func manifests(texts ...string) string { return strings.Join(texts, "\n---\n") }

// withdraw deletes an object of the foundation, as somebody else, and waits until it is gone.
func (l *lab) withdraw(where schema.GroupVersionResource, name string) {
	l.Helper()
	l.delete(where, "", name)
	l.eventually(name+" is gone", func() bool { return l.get(where, "", name) == nil })
}

// unserve is withdraw for a definition, and waits until its kind is not served any more.
func (l *lab) unserve(plural string) {
	l.Helper()
	l.withdraw(definitions, plural+"."+l.name+".example.com")
	where := schema.GroupVersionResource{Group: l.name + ".example.com", Version: "v1", Resource: plural}
	l.eventually("the kind is not served", func() bool {
		_, err := l.others.Resource(where).List(l.Context(), metav1.ListOptions{})
		return err != nil
	})
}

// putBack looks for drift and repairs it until nothing is left, and gives what was missing at first.
func (l *lab) putBack(objects string, inventory ownership.Inventory, change ...func(*apply.Options)) (now ownership.Inventory, missing []string) {
	l.Helper()
	prepared, now := l.prepare(objects, change...), inventory
	s := apply.NewSurvey(time.Hour, time.Now)
	l.eventually("everything is put back", func() bool {
		drift := must(s.Drifted(l.Context(), l.target, l.owner, now))(l)
		if missing == nil {
			for _, one := range drift {
				missing = append(missing, one.Key.Kind+" "+one.Key.Name+": "+one.Reason)
			}
		}
		repaired := must(apply.Repair(l.Context(), l.target, l.owner, keysOf(drift), apply.Applied{Objects: prepared, Inventory: now}))(l)
		now = repaired.Inventory
		return len(drift) == 0
	})
	return now, missing
}

// Red in all cases but the namespace's when a list that is answered with 404 fails the look (isUnserved not asked in look.list), or when
// a kind that is not served counts as no drift.
func TestWhatGoesWithItsFoundationIsPutBack(t *testing.T) {
	three := manifests(custom("Widget", "v1", "one"), custom("Widget", "v1", "two"), custom("Widget", "v1", "three"))
	createOnly := strings.Replace(definition("Widget", "Namespaced", ""), "metadata: {",
		"metadata: {annotations: {"+kubermaticv1.AnnotationUpdate+": create-only}, ", 1)
	for name, test := range map[string]struct {
		objects string
		missing []string
	}{
		"a kind of namespaces": {
			manifests(definition("Widget", "Namespaced", ""), custom("Widget", "v1", "one")),
			[]string{"CustomResourceDefinition widgets: Missing", "Widget one: Missing"},
		},
		"a kind of the cluster": {
			manifests(definition("Widget", "Cluster", ""), custom("Widget", "v1", "one")),
			[]string{"CustomResourceDefinition widgets: Missing", "Widget one: Missing"},
		},
		"a kind in another version": {
			manifests(definition("Widget", "Namespaced", "v2"), custom("Widget", "v2", "one")),
			[]string{"CustomResourceDefinition widgets: Missing", "Widget one: Missing"},
		},
		"several objects of a kind": {
			manifests(definition("Widget", "Namespaced", ""), three),
			[]string{"CustomResourceDefinition widgets: Missing", "Widget one: Missing", "Widget three: Missing", "Widget two: Missing"},
		},
		"a definition that is made once": {
			manifests(createOnly, custom("Widget", "v1", "one")),
			[]string{"CustomResourceDefinition widgets: Missing", "Widget one: Missing"},
		},
		"one kind of two": {
			manifests(definition("Widget", "Namespaced", ""), custom("Widget", "v1", "one"),
				definition("Gadget", "Namespaced", ""), custom("Gadget", "v1", "stays")),
			[]string{"CustomResourceDefinition widgets: Missing", "Widget one: Missing"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.namespace()
			inventory := l.install(l.prepare(test.objects), nil)
			l.eventually("nothing has drifted, as discovery has it", func() bool { return len(l.drift(inventory)) == 0 })
			l.unserve("widgets")
			if health := l.assess(inventory); health.Healthy > health.Total-len(test.missing) {
				t.Errorf("%d of %d objects are healthy where %d are gone", health.Healthy, health.Total, len(test.missing))
			}
			inventory, missing := l.putBack(test.objects, inventory)
			for i := range missing {
				missing[i] = strings.ReplaceAll(missing[i], "."+l.name+".example.com", "")
			}
			if diff := cmp.Diff(test.missing, missing); diff != "" {
				t.Errorf("missing (-want +got):\n%s", diff)
			}
			l.eventually("everything is healthy", func() bool { health := l.assess(inventory); return health.Healthy == health.Total })
		})
	}
	t.Run("a namespace", func(t *testing.T) {
		l := newLab(t)
		inventory := l.install(l.prepare(twoMaps, createNamespace), nil)
		s := apply.NewSurvey(time.Hour, time.Now)
		must(s.Drifted(t.Context(), l.target, l.owner, inventory))(t)
		l.withdraw(namespaces, l.name)
		_, missing := l.putBack(twoMaps, inventory, createNamespace)
		want := []string{"ConfigMap other: Missing", "ConfigMap settings: Missing", "Namespace " + l.name + ": Missing"}
		if diff := cmp.Diff(want, missing); diff != "" {
			t.Errorf("missing (-want +got):\n%s", diff)
		}
	})
}

// Red when what a list had on its way out is not looked at again in the same round: it would be missed until the next.
func TestWhatWasGoingIsPutBackInTheSameRound(t *testing.T) {
	l := newLab(t)
	objects := manifests(definition("Widget", "Namespaced", ""), custom("Widget", "v1", "one"))
	l.namespace()
	inventory := l.install(l.prepare(objects), nil)
	l.eventually("the custom resource is held", func() bool {
		return l.tryEdit(l.widgets(), "one", `{metadata: {finalizers: [example.com/hold]}}`) == nil
	})
	l.delete(definitions, "", "widgets."+l.name+".example.com")
	l.eventually("both go", func() bool { return l.get(l.widgets(), l.name, "one").GetDeletionTimestamp() != nil })
	s := apply.NewSurvey(time.Hour, time.Now)
	if drift := must(s.Drifted(t.Context(), l.target, l.owner, inventory))(t); len(drift) > 0 {
		t.Fatalf("what is being deleted is let go first, got drift %v", drift)
	}
	l.eventually("the hold is taken off", func() bool {
		return l.tryEdit(l.widgets(), "one", `{metadata: {finalizers: null}}`) == nil
	})
	l.eventually("the definition is gone", func() bool { return l.get(definitions, "", "widgets."+l.name+".example.com") == nil })
	l.eventually("both are missing", func() bool {
		return driftReasons(must(s.Drifted(t.Context(), l.target, l.owner, inventory))(t)) == apply.DriftMissing+" "+apply.DriftMissing
	})
}

// Red when Repair leaves out what is not served without a word: it would count as put back.
func TestObjectsOfAnothersKindComeBackWithIt(t *testing.T) {
	l := newLab(t)
	l.namespace()
	installed := map[string]ownership.Inventory{}
	users := []string{"first", "second", "third"}
	l.create(definitions, "", definition("Widget", "Namespaced", ""))
	for _, user := range users {
		l.as(user, func() {
			l.eventually("the kind is served", func() bool {
				progress := l.rollout(l.prepare(custom("Widget", "v1", user)), nil, apply.RolloutOptions{})
				installed[user] = progress.Inventory
				return progress.Complete
			})
			l.drift(installed[user])
		})
	}
	l.unserve("widgets")
	for _, user := range users {
		l.as(user, func() {
			drift := l.drift(installed[user])
			applied := apply.Applied{Objects: l.prepare(custom("Widget", "v1", user)), Inventory: installed[user]}
			repaired := must(apply.Repair(t.Context(), l.target, l.owner, keysOf(drift), applied))(t)
			want := []string{"Widget " + user + ": KindNotServed"}
			if diff := cmp.Diff(want, reasons(repaired.Refused)); diff != "" || driftReasons(drift) != apply.DriftMissing {
				t.Errorf("drift %v, refused (-want +got):\n%s", drift, diff)
			}
		})
	}
	l.create(definitions, "", definition("Widget", "Namespaced", ""))
	for _, user := range users {
		l.as(user, func() { installed[user], _ = l.putBack(custom("Widget", "v1", user), installed[user]) })
		if l.get(l.widgets(), l.name, user) == nil {
			t.Errorf("the object of %s is not back", user)
		}
	}
}

// Red when a version that is served no more counts as a kind that is gone: the mapper names it until it is asked anew.
func TestDroppedVersionIsNoDrift(t *testing.T) {
	l := newLab(t)
	l.namespace()
	inventory := l.install(l.prepare(manifests(definition("Widget", "Namespaced", "v2"), custom("Widget", "v2", "one"))), nil)
	l.drift(inventory)
	l.eventually("version v2 is dropped", func() bool {
		live := l.get(definitions, "", "widgets."+l.name+".example.com")
		live.Object["spec"].(map[string]any)["versions"].([]any)[1].(map[string]any)["served"] = false
		_, err := l.others.Resource(definitions).Update(t.Context(), live, metav1.UpdateOptions{})
		return err == nil
	})
	second := l.widgets()
	second.Version = "v2"
	l.eventually("version v2 is not served", func() bool {
		_, err := l.others.Resource(second).List(t.Context(), metav1.ListOptions{})
		return err != nil
	})
	l.eventually("nothing of the kind has drifted", func() bool {
		return !slices.ContainsFunc(l.drift(inventory), func(one apply.Drift) bool { return one.Key.Kind == "Widget" })
	})
}

// Red when the rollout does not look at a definition again that was ready (revisit): it would wait for ever; and when what was
// written of the kind before is not written again.
func TestDefinitionThatGoesDuringARolloutIsMadeAnew(t *testing.T) {
	l := newLab(t)
	l.namespace()
	objects := manifests(definition("Widget", "Namespaced", ""), custom("Widget", "v1", "one"), custom("Widget", "v1", "two"))
	rollout := apply.NewRollout(l.owner, l.prepare(objects), nil, apply.RolloutOptions{})
	var atGate, atSecond sync.Once
	rollout.Hold(func(context.Context) (bool, error) {
		atGate.Do(func() { l.unserve("widgets") })
		return true, nil
	})
	first := l.widgets()
	written := fmt.Sprintf("PATCH /apis/%s/v1/namespaces/%s/widgets/two", first.Group, l.name)
	l.calls.before = func(call string) {
		if call == written && l.get(first, l.name, "one") != nil {
			atSecond.Do(func() { l.unserve("widgets") })
		}
	}
	var progress apply.Progress
	l.eventually("the rollout", func() bool {
		progress = must(rollout.Advance(t.Context(), l.target))(t)
		return progress.Complete || len(progress.Refused) > 0
	})
	if len(progress.Refused) > 0 {
		t.Fatalf("refused: %v", progress.Refused)
	}
	if drift := l.drift(progress.Inventory); len(drift) > 0 {
		t.Errorf("after the rollout: %v", drift)
	}
}

// Red when a removal fails for ever over a definition that was never established: nothing answers for its kind.
func TestRemovalWithKindsThatAreNotServed(t *testing.T) {
	l := newLab(t)
	l.namespace()
	objects := l.prepare(manifests(definition("Widget", "Namespaced", ""), custom("Widget", "v1", "one")))
	inventory := l.install(objects, nil)
	l.drift(inventory)
	l.unserve("widgets")
	l.remove(inventory, apply.RemoveOptions{CRDs: whenUnused})

	l.create(definitions, "", definition("Widget", "Namespaced", ""))
	clash := strings.NewReplacer("name: widgets.", "name: clashes.", "plural: widgets", "plural: clashes").Replace(
		definition("Widget", "Namespaced", ""))
	rollout := apply.NewRollout(l.owner, l.prepare(clash), nil, apply.RolloutOptions{})
	var progress apply.Progress
	l.eventually("the names are refused", func() bool {
		progress = must(rollout.Advance(t.Context(), l.target))(t)
		return len(progress.Waiting) == 1 && strings.Contains(progress.Waiting[0].Message, "names are not accepted")
	})
	l.remove(progress.Inventory, apply.RemoveOptions{CRDs: whenUnused})
	if l.get(definitions, "", "clashes."+l.name+".example.com") != nil {
		t.Error("the definition that was never established stays")
	}
}
