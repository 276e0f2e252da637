package addoninstallation_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/given"
)

// work counts requests to sources and renderers.
type work struct {
	fetch.Store
	fetches, renders atomic.Int32
}

func (c *work) Get(reference fetch.Reference, subscriber string, wake func()) (fetch.Snapshot, error) {
	c.fetches.Add(1)
	return c.Store.Get(reference, subscriber, wake)
}

type countedRenderer struct {
	render.Renderer
	count *atomic.Int32
}

func (c countedRenderer) Render(ctx context.Context, input render.Input) (render.Result, error) {
	c.count.Add(1)
	return c.Renderer.Render(ctx, input)
}

// none fails the test if anything was fetched or rendered since the last reset.
func (c *work) none(t *testing.T) {
	t.Helper()
	if fetches, renders := c.fetches.Swap(0), c.renders.Swap(0); fetches+renders > 0 {
		t.Errorf("content was asked for %d times, and %d times rendered", fetches, renders)
	}
}

// newPinWorld counts fetches and renderings.
func newPinWorld(t *testing.T) (*world, *work) {
	t.Helper()
	w, done := newHookWorld(t), &work{}
	w.store = func(store fetch.Store) fetch.Store {
		done.Store = store
		return done
	}
	for method, renderer := range w.renderers {
		w.renderers[method] = countedRenderer{renderer, &done.renders}
	}
	return w, done
}

// contentOf is the digest of a version for addonRef.digest.
func contentOf(t *testing.T, version kubermaticv1.AddonVersion) string {
	t.Helper()
	entry, err := catalogue.NewEntry(&kubermaticv1.AddonCatalogue{
		Spec: kubermaticv1.AddonCatalogueSpec{Addons: []kubermaticv1.Addon{{Name: "any", Versions: []kubermaticv1.AddonVersion{version}}}},
	})
	expect.NoError(t, err)
	_, origin := entry.Version(version.Version)
	return origin.Content
}

// saying is version 1.0.0 of the test's add-on with this text in ConfigMap settings.
func (w *world) saying(text string) kubermaticv1.AddonVersion {
	made := w.version(offered{version: "1.0.0"})
	made.Values = raw(fmt.Sprintf(`{"version":%q}`, text))
	return made
}

func (w *world) installPinned(addon, version, digest string) *kubermaticv1.AddonInstallation {
	w.t.Helper()
	object := given.Installation(w.namespace, addon, addon, w.unique(addon), given.In(version), given.NewNamespace)
	object.Spec.AddonRef.Digest = digest
	w.create(object)
	return object
}

const compatible = kubermaticv1.ConditionCompatible

// content is the digest in the status, if it is checked, and the text in the user cluster.
type content struct{ digest, text string }

// expectContent waits until a condition and Ready have these reasons, of the present generation, and the status and the
// user cluster have that content.
func (w *world) expectContent(object *kubermaticv1.AddonInstallation, ready, kind, reason string, content content) {
	w.t.Helper()
	expect.Object(w.t, w.seed, object, func(object *kubermaticv1.AddonInstallation) error {
		state := "False"
		if ready == kubermaticv1.ReasonReady {
			state = "True"
		}
		if err := expect.Condition(object, kubermaticv1.ConditionReady, state, ready); err != nil {
			return err
		}
		if reported := meta.FindStatusCondition(object.Status.Conditions, kind); reported == nil || reported.Reason != reason {
			return fmt.Errorf("%s is %+v, want %s; the user cluster has %q", kind, reported, reason, w.installed(object))
		}
		if object.Status.ObservedGeneration != object.Generation {
			return fmt.Errorf("generation %d is not observed", object.Generation)
		}
		if applied := object.Status.LastApplied; content.digest != "" && (applied == nil || applied.EntryDigest != content.digest) {
			return fmt.Errorf("last applied is %+v, want content %s", applied, content.digest)
		}
		if has := w.installed(object); has != content.text {
			return fmt.Errorf("the user cluster has %q, want %q", has, content.text)
		}
		return nil
	})
}

// spoilSettings deletes an installation's objects, and requests a comparison.
func (w *world) spoilSettings(object *kubermaticv1.AddonInstallation) {
	w.t.Helper()
	w.delete(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: object.Spec.TargetNamespace, Name: "settings"}})
	w.lookAgain(object)
}

// RS52: If content changes under one version, a pinned installation keeps its content, is repaired from its record, and
// fetches nothing. It fails if Choose ignores the digest (the new content is applied), if a pinned installation takes
// the ordinary steps (fetches are counted), if it is Stalled (not Ready), if its list of steps lacks drift, if a
// restart loses its state, or if it does not change once the catalogue returns to the digest.
func TestAPinnedInstallationKeepsItsContent(t *testing.T) {
	t.Parallel()
	w, done := newPinWorld(t)
	stop := w.startUntil()
	t.Cleanup(func() { stop() })
	first, second := w.saying("first"), w.saying("second")
	digest := contentOf(t, first)
	w.offer("held", kubermaticv1.CatalogueCustom, first)
	object := w.installPinned("held", "1.0.0", digest)
	w.expectContent(object, kubermaticv1.ReasonReady, compatible, kubermaticv1.ReasonCompatible, content{digest, "first"})
	deprecated := first
	deprecated.Deprecated = "it is old"
	w.offer("held", kubermaticv1.CatalogueCustom, deprecated)
	w.expectContent(object, kubermaticv1.ReasonReady, compatible, kubermaticv1.ReasonDeprecated, content{digest, "first"})

	w.offer("held", kubermaticv1.CatalogueCustom, second)
	pinned := func() {
		t.Helper()
		w.expectContent(object, kubermaticv1.ReasonReady, compatible, kubermaticv1.ReasonPinned, content{digest, "first"})
	}
	pinned()
	w.expectSummary(object, "True", kubermaticv1.ReasonReady, "a change waits", kubermaticv1.ConditionCompatible)
	done.fetches.Store(0)
	done.renders.Store(0)
	w.spoilSettings(object)
	pinned()
	w.edit(object, func(object *kubermaticv1.AddonInstallation) { object.Spec.Values = raw(`{"version":"mine"}`) })
	pinned()
	w.running("v1.36.4")
	stop()
	stop = w.startUntil()
	w.spoilSettings(object)
	pinned()
	done.none(t)
	reported := meta.FindStatusCondition(object.Status.Conditions, kubermaticv1.ConditionCompatible)
	if reported.Status != metav1.ConditionTrue || !strings.Contains(reported.Message, contentOf(t, second)) ||
		!strings.Contains(reported.Message, "the applied revision stays") {
		t.Errorf("the digest of today is not told: %+v", reported)
	}
	for _, earned := range []string{kubermaticv1.ConditionFetched, kubermaticv1.ConditionRendered, kubermaticv1.ConditionApplied} {
		if !meta.IsStatusConditionTrue(object.Status.Conditions, earned) {
			t.Errorf("%s was earned before, and is not True", earned)
		}
	}
	if object.Status.Version != "1.0.0" || object.Status.Target != "1.0.0" {
		t.Errorf("it has version %q, target %q", object.Status.Version, object.Status.Target)
	}

	w.offer("held", kubermaticv1.CatalogueCustom, first)
	w.expectContent(object, kubermaticv1.ReasonReady, compatible, kubermaticv1.ReasonCompatible, content{digest, "mine"})
	w.edit(object, func(object *kubermaticv1.AddonInstallation) { object.Spec.Values = nil })
	w.offer("held", kubermaticv1.CatalogueCustom, second)
	w.edit(object, func(object *kubermaticv1.AddonInstallation) { object.Spec.AddonRef.Digest = contentOf(t, second) })
	w.expectContent(object, kubermaticv1.ReasonReady, compatible, kubermaticv1.ReasonCompatible, content{contentOf(t, second), "second"})
}

// TestContentThatIsGoneIsReported fails if missing content counts as the present one, if Ready is True without it, or if
// installed objects are not repaired.
func TestContentThatIsGoneIsReported(t *testing.T) {
	t.Parallel()
	w, _ := newPinWorld(t)
	w.start()
	first, second := w.saying("first"), w.saying("second")
	w.offer("lost", kubermaticv1.CatalogueCustom, second)
	object := w.installPinned("lost", "1.0.0", contentOf(t, first))
	w.expectContent(object, kubermaticv1.ReasonContentGone, compatible, kubermaticv1.ReasonContentGone, content{"", ""})
	w.edit(object, func(object *kubermaticv1.AddonInstallation) { object.Spec.AddonRef.Digest = "" })
	w.expectContent(object, kubermaticv1.ReasonReady, compatible, kubermaticv1.ReasonCompatible, content{contentOf(t, second), "second"})
	w.edit(object, func(object *kubermaticv1.AddonInstallation) { object.Spec.AddonRef.Digest = contentOf(t, first) })
	gone := func() {
		t.Helper()
		w.expectContent(object, kubermaticv1.ReasonContentGone, compatible, kubermaticv1.ReasonContentGone, content{contentOf(t, second), "second"})
	}
	gone()
	w.spoilSettings(object)
	gone()
	w.offer("lost", kubermaticv1.CatalogueCustom, first)
	w.expectContent(object, kubermaticv1.ReasonReady, compatible, kubermaticv1.ReasonCompatible, content{contentOf(t, first), "first"})
}

// A process ends between intent and apply, and the content changes, or the version is removed, before the next begins.
// It fails if Decide waits there (onlyOnRecord without Finish): the hook ends and nothing follows it; and if the next
// process renders.
func TestABegunRolloutIsFinishedFromItsRecord(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		pinned        bool
		change        func(*kubermaticv1.AddonVersion)
		ready, reason string
	}{
		"other content": {true, func(version *kubermaticv1.AddonVersion) { version.Values = raw(`{"tag":"two"}`) },
			kubermaticv1.ReasonReady, kubermaticv1.ReasonPinned},
		"withdrawn": {false, func(version *kubermaticv1.AddonVersion) { version.Version = "2.0.0" },
			kubermaticv1.ReasonWithdrawn, kubermaticv1.ReasonWithdrawn},
		"withdrawn under a pin": {true, func(version *kubermaticv1.AddonVersion) { version.Version = "2.0.0" },
			kubermaticv1.ReasonWithdrawn, kubermaticv1.ReasonWithdrawn},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, done := newPinWorld(t)
			var first kubermaticv1.AddonVersion
			w.publishChart("begun", "begun", func(version *kubermaticv1.AddonVersion) { first = *version },
				map[string]string{"settings": settings, "before": job("before", "pre-install", "")})
			stop := w.startUntil()
			digest := contentOf(t, first)
			if !test.pinned {
				digest = ""
			}
			object := w.installPinned("begun", "1.0.0", digest)
			before := w.awaitJob(object, "before")
			stop()
			other := *first.DeepCopy()
			test.change(&other)
			w.publishVersions("begun", kubermaticv1.CatalogueCustom, []kubermaticv1.AddonVersion{other})
			done.fetches.Store(0)
			done.renders.Store(0)
			w.start()
			w.end(before, true)
			w.expectContent(object, test.ready, compatible, test.reason, content{contentOf(t, first), ""})
			if tag := w.settings(object).Data["tag"]; tag != "one" {
				t.Errorf("the settings say %q", tag)
			}
			expect.HasCondition(t, w.seed, object, expect.Is(kubermaticv1.ConditionApplied, "True", kubermaticv1.ReasonApplied))
			done.none(t)
		})
	}
}

// A tag that is pushed again, or a branch that moves, under a pin. It fails if the new artifact is applied without a
// request (artifactGone returns nothing), if that is not reported, if reconcile-at or an edit does not apply it, or if
// the unpinned one does not follow.
func TestAnArtifactThatMovesUnderAPinIsReported(t *testing.T) {
	t.Parallel()
	w, _ := newPinWorld(t)
	w.start()
	files := func(text string) map[string]string {
		return map[string]string{"settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {version: '" + text +
			" {{ .Variables.version }}'}\n"}
	}
	version := w.content("1.0.0", kubermaticv1.MethodGoTemplate, w.unique("moved"), files("first"))
	version.Values = raw(`{"version":"v"}`)
	digest := contentOf(t, version)
	w.offer("moved", kubermaticv1.CatalogueCustom, version)
	w.offer("free", kubermaticv1.CatalogueCustom, version)
	pinned, free := w.installPinned("moved", "1.0.0", digest), w.install("free", "1.0.0")
	fetched := func(object *kubermaticv1.AddonInstallation, reason, text string) {
		t.Helper()
		w.expectContent(object, kubermaticv1.ReasonReady, kubermaticv1.ConditionFetched, reason, content{digest, text})
	}
	fetched(pinned, kubermaticv1.ReasonFetched, "first v")
	fetched(free, kubermaticv1.ReasonFetched, "first v")
	w.content("1.0.0", kubermaticv1.MethodGoTemplate, w.unique("moved"), files("second"))
	w.lookAgain(free) // refreshes the source for both
	fetched(free, kubermaticv1.ReasonFetched, "second v")
	fetched(pinned, kubermaticv1.ReasonArtifactMoved, "first v")
	w.afterwards(pinned, func() { w.running("v1.36.4") }) // the cluster's own changes wait too
	if has := w.installed(pinned); has != "first v" {
		t.Errorf("it has %q", has)
	}
	w.lookAgain(pinned)
	fetched(pinned, kubermaticv1.ReasonFetched, "second v")

	w.content("1.0.0", kubermaticv1.MethodGoTemplate, w.unique("moved"), files("third"))
	w.lookAgain(free)
	fetched(free, kubermaticv1.ReasonFetched, "third v")
	fetched(pinned, kubermaticv1.ReasonArtifactMoved, "second v")
	w.edit(pinned, func(object *kubermaticv1.AddonInstallation) { object.Spec.Values = raw(`{"version":"mine"}`) })
	fetched(pinned, kubermaticv1.ReasonFetched, "third mine")
}

// TestInstallationsNameTheirReleases fails if ReleaseName ignores the installation's, or if the second of two that
// request one name in one namespace gets it.
func TestInstallationsNameTheirReleases(t *testing.T) {
	t.Parallel()
	w := newHookWorld(t)
	w.start()
	w.publishChart("named", "named", func(version *kubermaticv1.AddonVersion) {
		version.Template.Helm = &kubermaticv1.HelmOptions{ReleaseName: "by-the-catalogue"}
	}, map[string]string{"settings": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Release.Name }}-settings'}\n"})
	install := func(name, release string) *kubermaticv1.AddonInstallation {
		object := given.Installation(w.namespace, name, "named", w.unique("named"), given.NewNamespace)
		object.Spec.ReleaseName = release
		w.create(object)
		return object
	}
	first := install("first", "mine")
	w.ready(first)
	w.expectRelease(first, "mine", 1)
	if !w.has(&corev1.ConfigMap{}, first.Spec.TargetNamespace, "mine-settings") {
		t.Error("the chart was rendered with another name")
	}
	second := install("second", "mine")
	w.expectReady(second, kubermaticv1.ReasonReleaseNameTaken, `installation "first" has Helm release "mine"`, "releaseName")
	third := install("third", "")
	w.ready(third)
	w.expectRelease(third, "by-the-catalogue", 1)
	w.delete(first)
	expect.Gone(t, w.seed, first)
	w.lookAgain(second)
	w.ready(second)
	w.expectRelease(second, "mine", 1)
}
