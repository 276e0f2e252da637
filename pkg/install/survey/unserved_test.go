package survey_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/apply"
	"github.com/trellis-addons/trellis/pkg/install/survey"
	"github.com/trellis-addons/trellis/test/lab"
)

// TestWhatGoesWithItsFoundationIsPutBack fails in all cases but the namespace's if a list that is answered with 404
// fails the read (comparison.list without calls.IsUnserved), or if an unserved kind counts as no drift.
func TestWhatGoesWithItsFoundationIsPutBack(t *testing.T) {
	three := lab.Manifests(lab.Custom("Widget", "v1", "one"), lab.Custom("Widget", "v1", "two"), lab.Custom("Widget", "v1", "three"))
	createOnly := strings.Replace(lab.Definition("Widget", "Namespaced", ""), "metadata: {",
		"metadata: {annotations: {"+kubermaticv1.AnnotationUpdate+": create-only}, ", 1)
	for name, test := range map[string]struct {
		objects string
		missing []string
	}{
		"a kind of namespaces": {
			lab.Manifests(lab.Definition("Widget", "Namespaced", ""), lab.Custom("Widget", "v1", "one")),
			[]string{"CustomResourceDefinition widgets: Missing", "Widget one: Missing"},
		},
		"a kind of the cluster": {
			lab.Manifests(lab.Definition("Widget", "Cluster", ""), lab.Custom("Widget", "v1", "one")),
			[]string{"CustomResourceDefinition widgets: Missing", "Widget one: Missing"},
		},
		"a kind in another version": {
			lab.Manifests(lab.Definition("Widget", "Namespaced", "v2"), lab.Custom("Widget", "v2", "one")),
			[]string{"CustomResourceDefinition widgets: Missing", "Widget one: Missing"},
		},
		"several objects of a kind": {
			lab.Manifests(lab.Definition("Widget", "Namespaced", ""), three),
			[]string{"CustomResourceDefinition widgets: Missing", "Widget one: Missing", "Widget three: Missing", "Widget two: Missing"},
		},
		"a definition that is made once": {
			lab.Manifests(createOnly, lab.Custom("Widget", "v1", "one")),
			[]string{"CustomResourceDefinition widgets: Missing", "Widget one: Missing"},
		},
		"one kind of two": {
			lab.Manifests(lab.Definition("Widget", "Namespaced", ""), lab.Custom("Widget", "v1", "one"),
				lab.Definition("Gadget", "Namespaced", ""), lab.Custom("Gadget", "v1", "stays")),
			[]string{"CustomResourceDefinition widgets: Missing", "Widget one: Missing"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := lab.New(t)
			l.Namespace()
			inventory := l.Install(l.Prepare(test.objects), nil)
			l.Eventually("nothing has drifted, as discovery has it", func() bool { return len(l.Drift(inventory)) == 0 })
			l.Unserve("widgets")
			if health := l.Assess(inventory); health.Healthy > health.Total-len(test.missing) {
				t.Errorf("%d of %d objects are healthy where %d are gone", health.Healthy, health.Total, len(test.missing))
			}
			inventory, missing := l.PutBack(test.objects, inventory)
			for i := range missing {
				missing[i] = strings.ReplaceAll(missing[i], "."+l.Unique+".example.com", "")
			}
			if diff := cmp.Diff(test.missing, missing); diff != "" {
				t.Errorf("missing (-want +got):\n%s", diff)
			}
			l.Eventually("everything is healthy", func() bool { health := l.Assess(inventory); return health.Healthy == health.Total })
		})
	}
	t.Run("a namespace", func(t *testing.T) {
		l := lab.New(t)
		inventory := l.Install(l.Prepare(lab.TwoMaps, lab.CreateNamespace), nil)
		s := survey.New(time.Hour, time.Now)
		lab.Must(s.Drifted(t.Context(), l.Target, l.Owner, inventory))(t)
		l.Withdraw(lab.Namespaces, l.Unique)
		_, missing := l.PutBack(lab.TwoMaps, inventory, lab.CreateNamespace)
		want := []string{"ConfigMap other: Missing", "ConfigMap settings: Missing", "Namespace " + l.Unique + ": Missing"}
		if diff := cmp.Diff(want, missing); diff != "" {
			t.Errorf("missing (-want +got):\n%s", diff)
		}
	})
}

// TestWhatWasGoingIsPutBackInTheSameRound fails if objects that were being deleted in a list are not read again in the
// same round: they would be missing until the next.
func TestWhatWasGoingIsPutBackInTheSameRound(t *testing.T) {
	l := lab.New(t)
	objects := lab.Manifests(lab.Definition("Widget", "Namespaced", ""), lab.Custom("Widget", "v1", "one"))
	l.Namespace()
	inventory := l.Install(l.Prepare(objects), nil)
	l.Eventually("the custom resource is held", func() bool {
		return l.TryEdit(l.Widgets(), "one", `{metadata: {finalizers: [example.com/hold]}}`) == nil
	})
	l.Delete(lab.Definitions, "", "widgets."+l.Unique+".example.com")
	l.Eventually("both go", func() bool { return l.Get(l.Widgets(), l.Unique, "one").GetDeletionTimestamp() != nil })
	s := survey.New(time.Hour, time.Now)
	if drift := lab.Must(s.Drifted(t.Context(), l.Target, l.Owner, inventory))(t); len(drift) > 0 {
		t.Fatalf("what is being deleted is let go first, got drift %v", drift)
	}
	l.Eventually("the hold is taken off", func() bool {
		return l.TryEdit(l.Widgets(), "one", `{metadata: {finalizers: null}}`) == nil
	})
	l.Eventually("the definition is gone", func() bool { return l.Get(lab.Definitions, "", "widgets."+l.Unique+".example.com") == nil })
	l.Eventually("both are missing", func() bool {
		return driftReasons(lab.Must(s.Drifted(t.Context(), l.Target, l.Owner, inventory))(t)) == survey.DriftMissing+" "+survey.DriftMissing
	})
}

// TestObjectsOfAnothersKindComeBackWithIt fails if Repair omits objects of unserved kinds without a note: they would
// count as restored.
func TestObjectsOfAnothersKindComeBackWithIt(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	installed := map[string]ownership.Inventory{}
	users := []string{"first", "second", "third"}
	l.Create(lab.Definitions, "", lab.Definition("Widget", "Namespaced", ""))
	for _, user := range users {
		l.As(user, func() {
			l.Eventually("the kind is served", func() bool {
				progress := l.Rollout(l.Prepare(lab.Custom("Widget", "v1", user)), nil, apply.RolloutOptions{})
				installed[user] = progress.Inventory
				return progress.Complete
			})
			l.Drift(installed[user])
		})
	}
	l.Unserve("widgets")
	for _, user := range users {
		l.As(user, func() {
			drift := l.Drift(installed[user])
			applied := apply.Applied{Objects: l.Prepare(lab.Custom("Widget", "v1", user)), Inventory: installed[user]}
			repaired := lab.Must(apply.Repair(t.Context(), l.Target, l.Owner, lab.KeysOf(drift), applied))(t)
			want := []string{"Widget " + user + ": KindNotServed"}
			if diff := cmp.Diff(want, lab.Reasons(repaired.Refused)); diff != "" || driftReasons(drift) != survey.DriftMissing {
				t.Errorf("drift %v, refused (-want +got):\n%s", drift, diff)
			}
		})
	}
	l.Create(lab.Definitions, "", lab.Definition("Widget", "Namespaced", ""))
	for _, user := range users {
		l.As(user, func() { installed[user], _ = l.PutBack(lab.Custom("Widget", "v1", user), installed[user]) })
		if l.Get(l.Widgets(), l.Unique, user) == nil {
			t.Errorf("the object of %s is not back", user)
		}
	}
}

// TestDroppedVersionIsNoDrift fails if a version that is no longer served counts as a deleted kind: the mapper names it
// until it is reset.
func TestDroppedVersionIsNoDrift(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	inventory := l.Install(l.Prepare(lab.Manifests(lab.Definition("Widget", "Namespaced", "v2"), lab.Custom("Widget", "v2", "one"))), nil)
	l.Drift(inventory)
	l.Eventually("version v2 is dropped", func() bool {
		live := l.Get(lab.Definitions, "", "widgets."+l.Unique+".example.com")
		live.Object["spec"].(map[string]any)["versions"].([]any)[1].(map[string]any)["served"] = false
		_, err := l.Others.Resource(lab.Definitions).Update(t.Context(), live, metav1.UpdateOptions{})
		return err == nil
	})
	second := l.Widgets()
	second.Version = "v2"
	l.Eventually("version v2 is not served", func() bool {
		_, err := l.Others.Resource(second).List(t.Context(), metav1.ListOptions{})
		return err != nil
	})
	l.Eventually("nothing of the kind has drifted", func() bool {
		return !slices.ContainsFunc(l.Drift(inventory), func(one survey.Drift) bool { return one.Key.Kind == "Widget" })
	})
}
