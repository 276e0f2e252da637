package addoninstallation_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/controllers/addoninstallation"
	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/revision"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/given"
)

// work counts what is asked of sources and renderers.
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

// none fails the test if anything was fetched or rendered since then.
func (c *work) none(t *testing.T) {
	t.Helper()
	if fetches, renders := c.fetches.Swap(0), c.renders.Swap(0); fetches+renders > 0 {
		t.Errorf("content was asked for %d times, and %d times rendered", fetches, renders)
	}
}

// newPinWorld counts what is fetched and rendered.
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

// contentOf is the digest that addonRef.digest would name.
func contentOf(t *testing.T, version kubermaticv1.AddonVersion) string {
	t.Helper()
	entry, err := catalogue.NewEntry(&kubermaticv1.AddonCatalogue{
		Spec: kubermaticv1.AddonCatalogueSpec{Addons: []kubermaticv1.Addon{{Name: "any", Versions: []kubermaticv1.AddonVersion{version}}}},
	})
	expect.NoError(t, err)
	_, origin := entry.Version(version.Version)
	return origin.Content
}

// saying is version 1.0.0 of the test's add-on with what ConfigMap settings says.
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

// content is the digest of the status, where it is looked at, and what the user cluster has.
type content struct{ digest, text string }

// expectContent waits until a condition and Ready have these reasons, of the present generation, and the status and the user cluster
// have that content.
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
		if told := meta.FindStatusCondition(object.Status.Conditions, kind); told == nil || told.Reason != reason {
			return fmt.Errorf("%s is %+v, want %s; the user cluster has %q", kind, told, reason, w.installed(object))
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

// spoilSettings deletes what an installation has, and asks for a look.
func (w *world) spoilSettings(object *kubermaticv1.AddonInstallation) {
	w.t.Helper()
	w.delete(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: object.Spec.TargetNamespace, Name: "settings"}})
	w.lookAgain(object)
}

// RS52: Where content changes under one version, a pinned installation keeps what it has, is repaired from its record, and asks nobody for content.
// Red when Choose does not look at the digest (the new content is applied), when a pinned installation takes the ordinary steps (fetches
// are counted), when it is Stalled (not Ready), when its list of steps has no drift, or when it forgets what it is at a restart; red
// too when it stays as it is once the catalogue goes back.
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
	told := meta.FindStatusCondition(object.Status.Conditions, kubermaticv1.ConditionCompatible)
	if told.Status != metav1.ConditionTrue || !strings.Contains(told.Message, contentOf(t, second)) ||
		!strings.Contains(told.Message, "what is applied is kept reconciled from its record") {
		t.Errorf("the digest of today is not told: %+v", told)
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

// Red when content that nobody has is taken for the present one, when Ready is True without it, or when what is there is not repaired.
func TestContentThatIsGoneIsTold(t *testing.T) {
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

// A process ends between intent and apply, and the content changes, or the version goes, before the next begins. Red when Decide waits
// there (onlyOnRecord without Finish): the hook ends and nothing comes after it; red too when the next process renders.
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

// A tag that is pushed again, or a branch that moves, under a pin. Red when the artifact is taken by itself (artifactGone says nothing),
// when nobody is told, when reconcile-at or an edit does not take it, or when the one that is not pinned does not follow.
func TestAnArtifactThatMovesUnderAPinIsTold(t *testing.T) {
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

// former saves records as the release before did, which did not know contents.
type former struct{ addoninstallation.Records }

func (f former) SaveIntent(ctx context.Context, namespace string, record *revision.Record) error {
	record.Content = ""
	return f.Records.SaveIntent(ctx, namespace, record)
}

func (f former) SaveApplied(ctx context.Context, namespace string, record *revision.Record) error {
	record.Content = ""
	return f.Records.SaveApplied(ctx, namespace, record)
}

// Red when a pin of what is applied renders, or writes to the user cluster, or when the record of before does not get its content by the pin, so that it is gone with the next change.
func TestRecordsOfBeforeArePinned(t *testing.T) {
	t.Parallel()
	w, done := newPinWorld(t)
	w.records = func(records addoninstallation.Records) addoninstallation.Records { return former{records} }
	heard := w.overhear()
	stop := w.startUntil()
	first := w.saying("first")
	digest := contentOf(t, first)
	w.offer("aged", kubermaticv1.CatalogueCustom, first)
	object := w.install("aged", "1.0.0")
	w.ready(object)
	stop()

	w.records = nil
	w.start()
	other := w.install("later", "")
	w.offer("later", kubermaticv1.CatalogueCustom, first)
	w.ready(other)
	w.ready(object)
	done.renders.Store(0)
	heard.sinceThen()
	w.edit(object, func(object *kubermaticv1.AddonInstallation) { object.Spec.AddonRef.Digest = digest })
	w.expectContent(object, kubermaticv1.ReasonReady, compatible, kubermaticv1.ReasonCompatible, content{digest, "first"})
	for _, call := range heard.sinceThen() {
		if !strings.HasPrefix(call, http.MethodGet) {
			t.Errorf("the pin made call %q", call)
		}
	}
	if count := done.renders.Load(); count > 0 {
		t.Errorf("the pin rendered %d times", count)
	}
	w.offer("aged", kubermaticv1.CatalogueCustom, w.saying("second"))
	w.expectContent(object, kubermaticv1.ReasonReady, compatible, kubermaticv1.ReasonPinned, content{digest, "first"})
}

// Red when ReleaseName does not look at the installation's, or when the second of two that ask for one name in one namespace gets it.
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
