package addoninstallation_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/controllers/addoninstallation"
	"github.com/trellis-addons/trellis/pkg/install/revision"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/given"
)

// isLower is part of a message about a version below the installed one.
const isLower = "is lower: set annotation " + kubermaticv1.AnnotationAllowDowngrade

// offered is a version in the notation of these tests.
type offered struct{ version, k8s, deprecated string }

// publish creates or replaces the merged catalogue of an add-on.
func (w *world) publish(name string, kind kubermaticv1.CatalogueType, versions ...offered) {
	w.t.Helper()
	var made []kubermaticv1.AddonVersion
	for _, version := range versions {
		made = append(made, w.version(version))
	}
	w.publishVersions(name, kind, made)
}

func (w *world) publishVersions(name string, kind kubermaticv1.CatalogueType, versions []kubermaticv1.AddonVersion) {
	w.t.Helper()
	w.publishAddon(kind, kubermaticv1.Addon{Name: kubermaticv1.AddonName(name), Versions: versions})
}

func (w *world) publishAddon(kind kubermaticv1.CatalogueType, addon kubermaticv1.Addon) {
	w.t.Helper()
	object := &kubermaticv1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Namespace: w.catalogue, Name: string(addon.Name)}}
	expect.Put(w.t, w.seed, object, func(object *kubermaticv1.AddonCatalogue) {
		object.Labels = map[string]string{kubermaticv1.LabelRole: kubermaticv1.RoleMerged}
		object.Annotations = map[string]string{kubermaticv1.AnnotationKKPVersion: "v2.31.0", kubermaticv1.AnnotationVersions: w.origins(addon.Versions)}
		object.Spec = kubermaticv1.AddonCatalogueSpec{Type: kind, Addons: []kubermaticv1.Addon{addon}}
	})
}

// origins is the distributor's annotation about versions.
func (w *world) origins(versions []kubermaticv1.AddonVersion) string {
	w.t.Helper()
	made := map[string]catalogue.Origin{}
	for _, version := range versions {
		digest, err := catalogue.Digest(version)
		expect.NoError(w.t, err)
		made[version.Version] = catalogue.Origin{Digest: digest, Catalogue: "test"}
	}
	encoded, err := json.Marshal(made)
	expect.NoError(w.t, err)
	return string(encoded)
}

func (w *world) version(version offered) kubermaticv1.AddonVersion {
	made := kubermaticv1.AddonVersion{
		Version: version.version, Deprecated: version.deprecated,
		Template: &kubermaticv1.Template{Method: kubermaticv1.MethodGoTemplate},
		Source:   given.Git(w.sources.GitURL+"/addons.git", ""),
		Values:   &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"version":%q}`, version.version)},
	}
	if version.k8s != "" {
		made.Constraints = &kubermaticv1.Constraints{K8sVersion: kubermaticv1.VersionRange(version.k8s)}
	}
	return made
}

func (w *world) withdraw(name string) {
	w.t.Helper()
	object := &kubermaticv1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Namespace: w.catalogue, Name: name}}
	expect.Delete(w.t, w.seed, object)
}

func (w *world) install(addon, version string) *kubermaticv1.AddonInstallation {
	w.t.Helper()
	object := given.Installation(w.namespace, addon, addon, w.unique(addon), given.In(version), given.NewNamespace)
	w.create(object)
	return object
}

func (w *world) edit(object *kubermaticv1.AddonInstallation, change func(*kubermaticv1.AddonInstallation)) {
	w.t.Helper()
	expect.Change(w.t, w.seed, object, change)
}

func (w *world) want(object *kubermaticv1.AddonInstallation, version string) {
	w.t.Helper()
	w.edit(object, func(object *kubermaticv1.AddonInstallation) { object.Spec.AddonRef.Version = version })
}

// expectInstalled waits until that version is in the user cluster, with that available update.
func (w *world) expectInstalled(object *kubermaticv1.AddonInstallation, version, update string) {
	w.t.Helper()
	w.expectChoice(object, kubermaticv1.ReasonReady, version, update)
}

// expectChoice waits until Ready has the reason, Compatible a message with the words, or no message without any, and
// the user cluster that version; empty for none.
func (w *world) expectChoice(object *kubermaticv1.AddonInstallation, reason, version, update string, words ...string) {
	w.t.Helper()
	expect.Object(w.t, w.seed, object, func(object *kubermaticv1.AddonInstallation) error {
		state := "False"
		if reason == kubermaticv1.ReasonReady {
			state = "True"
		}
		if err := expect.Condition(object, kubermaticv1.ConditionReady, state, reason); err != nil {
			return err
		}
		reported := meta.FindStatusCondition(object.Status.Conditions, kubermaticv1.ConditionCompatible)
		if reported == nil || (len(words) == 0) != (reported.Message == "") {
			return fmt.Errorf("compatible says %+v, want %q", reported, words)
		}
		if have := w.installed(object); have != version || object.Status.AvailableUpdate != update {
			return fmt.Errorf("version %q with update %q, want %q with %q", have, object.Status.AvailableUpdate, version, update)
		}
		return expect.Says(reported.Message, words...)
	})
}

// installed is the version whose objects the user cluster has.
func (w *world) installed(object *kubermaticv1.AddonInstallation) string {
	w.t.Helper()
	settings := &corev1.ConfigMap{}
	err := w.seed.Get(w.t.Context(), client.ObjectKey{Namespace: object.Spec.TargetNamespace, Name: "settings"}, settings)
	if client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	return settings.Data["version"]
}

func TestVersionsAreSelected(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	t.Run("a range follows the catalogue and the cluster, and never goes down", func(t *testing.T) {
		w.t = t
		w.publish("ranged", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"}, offered{version: "1.1.0", k8s: ">= 1.37"},
			offered{version: "2.0.0"})
		object := w.install("ranged", "1.x")
		w.expectInstalled(object, "1.0.0", "2.0.0")
		w.publish("ranged", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"}, offered{version: "1.0.5"},
			offered{version: "1.1.0", k8s: ">= 1.37"})
		w.expectInstalled(object, "1.0.5", "")
		w.running("v1.37.1")
		w.expectInstalled(object, "1.1.0", "")
		w.running("v1.36.3")
		w.expectChoice(object, kubermaticv1.ExcludedK8sVersion, "1.1.0", "",
			`version "1.1.0" of add-on "ranged"`, "Kubernetes >= 1.37", "1.36.3", `version "1.0.5" would fit`, isLower)
		w.publish("ranged", kubermaticv1.CatalogueCustom, offered{version: "1.0.5"}, offered{version: "1.2.0"})
		w.expectInstalled(object, "1.2.0", "")
	})
	t.Run("absent is the newest that fits", func(t *testing.T) {
		w.t = t
		w.publish("absent", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"}, offered{version: "2.0.0-rc.1"}, offered{version: "main"})
		object := w.install("absent", "")
		w.expectInstalled(object, "1.0.0", "")
		w.publish("absent", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"}, offered{version: "2.0.0"}, offered{version: "main"})
		w.expectInstalled(object, "2.0.0", "")
	})
	t.Run("exact, in any spelling, and down only when allowed", func(t *testing.T) {
		w.t = t
		w.publish("exact", kubermaticv1.CatalogueCustom, offered{version: "v1.0.0"}, offered{version: "2.0.0"})
		object := w.install("exact", "2.0.0")
		w.expectInstalled(object, "2.0.0", "")
		w.want(object, "1.0.0")
		w.expectChoice(object, kubermaticv1.ReasonDowngradeRefused, "2.0.0", "",
			`version "v1.0.0" of add-on "exact" is lower`, `"2.0.0"`, kubermaticv1.AnnotationAllowDowngrade)
		w.edit(object, func(object *kubermaticv1.AddonInstallation) {
			object.Annotations = map[string]string{kubermaticv1.AnnotationAllowDowngrade: "true"}
		})
		w.expectInstalled(object, "v1.0.0", "2.0.0")
	})
	t.Run("a version that is withdrawn stays", func(t *testing.T) {
		w.t = t
		w.publish("gone", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"}, offered{version: "1.1.0"})
		object := w.install("gone", "1.0.0")
		w.expectInstalled(object, "1.0.0", "1.1.0")
		w.publish("gone", kubermaticv1.CatalogueCustom, offered{version: "1.1.0"})
		words := []string{`version "1.0.0" of add-on "gone"`, "stays installed", `version "1.1.0" would fit`}
		w.expectChoice(object, kubermaticv1.ReasonWithdrawn, "1.0.0", "1.1.0", words...)
		w.expectEvent(kubermaticv1.EventWithdrawn, object, words...)
		w.withdraw("gone")
		w.expectChoice(object, kubermaticv1.ReasonWithdrawn, "1.0.0", "", `add-on "gone" was removed`, `"1.0.0" stays installed`)
		w.expectChoice(w.install("never", ""), kubermaticv1.ReasonAddonUnknown, "", "", `add-on "never"`, `AddonCatalogue "available"`)
	})
	t.Run("a pin that stops fitting stays, and is repaired all the same", func(t *testing.T) {
		w.t = t
		w.publish("pinned", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"}, offered{version: "1.1.0"})
		object := w.install("pinned", "1.0.0")
		w.expectInstalled(object, "1.0.0", "1.1.0")
		w.publish("pinned", kubermaticv1.CatalogueCustom, offered{version: "1.0.0", k8s: ">= 1.37"}, offered{version: "1.1.0"})
		w.expectChoice(object, kubermaticv1.ExcludedK8sVersion, "1.0.0", "1.1.0",
			`version "1.0.0" of add-on "pinned"`, "Kubernetes >= 1.37", "1.36.3", `version "1.1.0" would fit`)
		w.want(object, "1.1.0")
		w.expectInstalled(object, "1.1.0", "")
	})
	t.Run("deprecated is told where it is, and not chosen anew", func(t *testing.T) {
		w.t = t
		w.publish("aged", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"}, offered{version: "1.1.0"})
		object := w.install("aged", "1.x")
		w.expectInstalled(object, "1.1.0", "")
		w.publish("aged", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"},
			offered{version: "1.1.0", deprecated: "it has a hole"}, offered{version: "2.0.0"})
		w.expectChoice(object, kubermaticv1.ReasonReady, "1.1.0", "2.0.0", `version "1.1.0" is deprecated: it has a hole`, `version "2.0.0" would fit`)
		if err := expect.Condition(object, kubermaticv1.ConditionCompatible, "True", kubermaticv1.ReasonDeprecated); err != nil {
			t.Error(err)
		}
	})
	t.Run("a draft is for those who name it", func(t *testing.T) {
		w.t = t
		versions := func(isDraft bool) []kubermaticv1.AddonVersion {
			made := []kubermaticv1.AddonVersion{w.version(offered{version: "1.0.0"}), w.version(offered{version: "1.1.0"})}
			made[1].Draft = isDraft
			return made
		}
		w.publishVersions("drafted", kubermaticv1.CatalogueCustom, versions(true))
		ranged, newest, tries := w.instance("drafted", "d-ranged", "1.x", ""), w.instance("drafted", "d-newest", "", ""), w.instance("drafted", "d-tries", "1.1.0", "")
		w.expectInstalled(ranged, "1.0.0", "")
		w.expectInstalled(newest, "1.0.0", "")
		w.expectInstalled(tries, "1.1.0", "")
		w.expectChoice(w.instance("drafted", "d-above", "> 1.0.0", ""), kubermaticv1.ReasonVersionUnknown, "", "",
			`add-on "drafted" has no version "> 1.0.0"`, "drafts")
		w.publishVersions("drafted", kubermaticv1.CatalogueCustom, versions(false))
		for _, object := range []*kubermaticv1.AddonInstallation{ranged, newest, tries} {
			w.expectInstalled(object, "1.1.0", "")
		}
		w.publishVersions("drafted", kubermaticv1.CatalogueCustom, versions(true)) // withdrawn: the installed version stays
		w.want(newest, "1.x")
		for _, object := range []*kubermaticv1.AddonInstallation{ranged, newest, tries} {
			w.expectInstalled(object, "1.1.0", "")
		}
	})
	t.Run("core add-ons are not users'", func(t *testing.T) {
		w.t = t
		w.publish("core", kubermaticv1.CatalogueCore, offered{version: "1.0.0"})
		object := w.install("core", "1.0.0")
		w.expectChoice(object, kubermaticv1.ExcludedCore, "", "", `add-on "core"`, "not offered")
		w.publish("turned", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"})
		object = w.install("turned", "")
		w.expectInstalled(object, "1.0.0", "")
		w.withdraw("turned") // The type can't be changed.
		w.publish("turned", kubermaticv1.CatalogueCore, offered{version: "1.0.0"})
		w.expectChoice(object, kubermaticv1.ExcludedCore, "1.0.0", "", `add-on "turned"`, "not offered")
	})
}

// TestRemovalWithoutAClusterLetsNothingGo: an installation whose Cluster is no longer found, deleted right after it got
// an object, keeps its finalizer until the Cluster is known to be gone.
func TestRemovalWithoutAClusterLetsNothingGo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.publish("kept", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"})
	object := w.install("kept", "")
	expect.HasCondition(t, w.seed, object, expect.Is(kubermaticv1.ConditionReady, "True", kubermaticv1.ReasonReady))
	w.lives("")
	expect.Delete(t, w.seed, object)
	w.expectHeldWithoutCluster(object)
	w.lives(w.namespace)
	expect.Gone(t, w.seed, object)
	if version := w.installed(object); version != "" {
		t.Errorf("version %s is still there", version)
	}
}

// TestRemovalWithoutAClusterGoesByTheRecords fails if a removal only uses the status, which a killed process had not
// written yet.
func TestRemovalWithoutAClusterGoesByTheRecords(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stop := w.startUntil()
	w.publish("untold", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"})
	object := w.install("untold", "")
	expect.HasCondition(t, w.seed, object, expect.Is(kubermaticv1.ConditionReady, "True", kubermaticv1.ReasonReady))
	stop()
	untold := object.DeepCopy()
	untold.Status = kubermaticv1.AddonInstallationStatus{}
	expect.PatchStatus(t, w.seed, untold, client.MergeFrom(object))
	w.lives("")
	expect.Delete(t, w.seed, object)
	w.start()
	w.expectHeldWithoutCluster(object)
	w.lives(w.namespace)
	expect.Gone(t, w.seed, object)
	if version := w.installed(object); version != "" {
		t.Errorf("version %s is still there", version)
	}
}

// witness records whether the status names the Cluster when the first intent is saved.
type witness struct {
	addoninstallation.Records
	seed  client.Client
	names chan bool
}

// SaveIntent implements addoninstallation.Records.
func (w *witness) SaveIntent(ctx context.Context, namespace string, record *revision.Record) error {
	object := &kubermaticv1.AddonInstallation{}
	if err := w.seed.Get(ctx, client.ObjectKey{Namespace: namespace, Name: record.Installation}, object); err != nil {
		return err
	}
	w.names <- object.Status.Cluster != nil
	return w.Records.SaveIntent(ctx, namespace, record)
}

// TestCoreAddonsNameTheirClusterFirst fails if an object of a core add-on may be applied before its status names the
// Cluster: its protection depends on the status.
func TestCoreAddonsNameTheirClusterFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	names := make(chan bool, 10)
	w.records = func(records addoninstallation.Records) addoninstallation.Records {
		return &witness{Records: records, seed: w.seed, names: names}
	}
	w.start()
	w.publish("guarded", kubermaticv1.CatalogueCore, offered{version: "1.0.0"})
	for _, name := range []string{"first", "second"} { // the first reconciliation ends to fetch content, which the second finds in the store
		object := given.Installation(w.namespace, name, "guarded", fmt.Sprintf("guarded-%s-%s", name, w.id), given.NewNamespace, given.Core)
		w.create(object)
		expect.HasCondition(t, w.seed, object, expect.Is(kubermaticv1.ConditionReady, "True", kubermaticv1.ReasonReady))
		if named := <-names; !named {
			t.Errorf("%s: the intent was saved before the status named the Cluster", name)
		}
	}
}

// lives sets the Cluster's namespace, "" for none.
func (w *world) lives(namespace string) {
	w.t.Helper()
	before := w.cluster.DeepCopy()
	w.cluster.Status.NamespaceName = namespace
	expect.PatchStatus(w.t, w.seed, w.cluster, client.MergeFrom(before))
}

// expectHeldWithoutCluster waits until an installation that is being deleted reports that its Cluster is not found, and
// checks that it stays.
func (w *world) expectHeldWithoutCluster(object *kubermaticv1.AddonInstallation) {
	t := w.t
	t.Helper()
	expect.Object(t, w.seed, object, func(object *kubermaticv1.AddonInstallation) error {
		ready := meta.FindStatusCondition(object.Status.Conditions, kubermaticv1.ConditionReady)
		if ready == nil || ready.Reason != kubermaticv1.ReasonClusterUnknown || !strings.Contains(ready.Message, w.namespace) ||
			!strings.Contains(ready.Message, "once the Cluster is known to be gone") {
			return fmt.Errorf("it says %+v", ready)
		}
		return nil
	})
	w.afterAnother(object)
	if err := w.seed.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil || w.installed(object) == "" {
		t.Errorf("it was let go: %v", err)
	}
}
