package distributor_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
)

// blackHole is the kubeconfig of a server that accepts connections and never answers.
func blackHole(t *testing.T) []byte {
	t.Helper()
	seed := fleet.Shared().Cluster("seed")
	return bytes.ReplaceAll(seed.Kubeconfig, []byte(seed.URL()), []byte("https://"+fleet.BlackHole(t)))
}

func TestABlackHoleHoldsNobodyUp(t *testing.T) {
	w := newWorld(t)
	w.seed("hole", blackHole(t))
	w.seed("remote", kubeconfigOf("seed"))
	w.start()
	custom := w.catalogueOf("custom", map[string][]string{"falco": {"1.0.0"}})
	expect.Create(w.t, w.master, custom)
	w.expectVersions("seed", "falco", "1.0.0")
	expect.Change(w.t, w.master, custom, func(object *v1.AddonCatalogue) { object.Spec.Addons = []v1.Addon{addonOf("falco", "2.0.0")} })
	w.expectVersions("seed", "falco", "2.0.0")
	object := w.expectCondition(custom, v1.ConditionReady, "True", v1.ReasonDistributed)
	for _, row := range object.Status.Seeds {
		// It is still being waited for, or was given up for now.
		reported := row.Message == "not reached yet" || row.Message == "the API server does not answer in time"
		if row.Name == "hole" && (row.Synced || !reported) {
			t.Errorf("row %+v", row)
		}
	}
}

func (w *world) eventsOn(object client.Object) []string {
	w.t.Helper()
	var reported []string
	for _, event := range expect.Events(w.t, w.master, object) {
		reported = append(reported, event.Reason+": "+event.Note)
	}
	return reported
}

func TestReportsWhatChanges(t *testing.T) {
	w := newWorld(t)
	w.seed("remote", kubeconfigOf("seed"))
	w.start()
	first := w.catalogueOf("first", map[string][]string{"velero": {"1.0.0", "1.1.0"}})
	expect.Create(w.t, w.master, first)
	merged := w.expectVersions("seed", "velero", "1.1.0", "1.0.0")
	digest := merged.Annotations[v1.AnnotationDigest]

	// The same version, other content.
	expect.Change(w.t, w.master, first, func(object *v1.AddonCatalogue) { object.Spec.Addons[0].Versions[0].Source.Git.Path = "elsewhere" })
	expect.Event(t, w.master, first, v1.EventChanged, "content changed under the same version", "velero 1.0.0")
	// The same content, other clusters.
	expect.Change(w.t, w.master, first, func(object *v1.AddonCatalogue) {
		object.Spec.Addons[0].Versions[0].Constraints = &v1.Constraints{K8sVersion: ">= 1.34"}
	})
	expect.Event(t, w.master, first, v1.EventChanged, "constraints, deprecation or onClusterDeletion changed", "no content", "velero 1.0.0")
	isContent := func(text string) bool { return !strings.Contains(text, "content changed under") }
	if reported := slices.DeleteFunc(w.eventsOn(first), isContent); len(reported) != 1 {
		t.Errorf("a changed constraint is told as changed content: %q", reported)
	}
	expect.Object(t, w.client("seed"), merged, func(object *v1.AddonCatalogue) error {
		if object.Annotations[v1.AnnotationDigest] == digest {
			return fmt.Errorf("the digest is still %s", digest)
		}
		return nil
	})

	// What another owns is told, to who does not.
	second := w.catalogueOf("second", map[string][]string{"velero": {"v1.1"}})
	expect.Create(w.t, w.master, second)
	expect.Event(t, w.master, second, v1.EventConflict, `add-on "velero" is left out`, `Custom catalogue "first"`, "Remove it from one of the two catalogues",
		"verb manage-core", "set annotation "+v1.AnnotationTakeOver+`=velero on "second"`)
	for _, reported := range w.eventsOn(first) {
		if strings.HasPrefix(reported, v1.EventConflict) || strings.Contains(reported, "1.1.0") && strings.HasPrefix(reported, v1.EventChanged) {
			t.Errorf("what did not change is told: %s", reported)
		}
	}

	// What is merged has a status of its own, and follows edits.
	expect.Object(t, w.client("seed"), w.merged("velero"), func(object *v1.AddonCatalogue) error {
		if object.Status.Versions != 2 || object.Status.Addons != 1 {
			return fmt.Errorf("status %+v", object.Status)
		}
		return expect.Condition(object, v1.ConditionReady, "True", v1.ReasonMerged)
	})
	expect.Change(w.t, w.master, first, func(object *v1.AddonCatalogue) { object.Spec.Addons[0].Versions = object.Spec.Addons[0].Versions[1:] })
	w.expectVersions("seed", "velero", "1.1.0")
	expect.Object(t, w.client("seed"), w.merged("velero"), func(object *v1.AddonCatalogue) error {
		if object.Status.Versions != 1 || object.Status.ObservedGeneration != object.Generation {
			return fmt.Errorf("status %+v at generation %d", object.Status, object.Generation)
		}
		return nil
	})
}

func TestHoldsWhatIsUnknown(t *testing.T) {
	w := newWorld(t)
	w.seed("remote", kubeconfigOf("seed"))
	custom := w.catalogueOf("custom", map[string][]string{"argo": {"1.0.0"}, "shared": {"1.0.0"}})
	other := w.catalogueOf("other", map[string][]string{"shared": {"2.0.0"}, "own": {"1.0.0"}})
	expect.Create(w.t, w.master, custom)
	expect.Create(w.t, w.master, other)
	stop := w.start() // both own what was merged of both
	w.expectVersions("seed", "argo", "1.0.0")
	w.expectVersions("seed", "shared", "2.0.0", "1.0.0")
	w.expectVersions("seed", "own", "1.0.0")
	expect.Eventually(t, expect.Patience, func() error {
		if kept := len(w.revisions()); kept != 2 {
			return fmt.Errorf("%d specs are kept", kept)
		}
		return nil
	})
	stop()

	// The spec is invalid, and the kept one is beyond reading.
	expect.Change(w.t, w.master, custom, func(object *v1.AddonCatalogue) { object.Spec.Addons = []v1.Addon{addonOf("argo", "2.0.0", "v2.0.0")} })
	for _, kept := range w.revisions() {
		if !metav1.IsControlledBy(&kept, custom) {
			continue
		}
		expect.Delete(t, w.master, &kept)
		expect.Create(w.t, w.master, &appsv1.ControllerRevision{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: kept.Namespace, Name: kept.Name, Labels: kept.Labels, Annotations: kept.Annotations,
				OwnerReferences: kept.OwnerReferences,
			},
			Data: runtime.RawExtension{Raw: []byte(`{"addons":"none"}`)}, Revision: kept.Revision,
		})
	}
	w.start()
	w.expectCondition(custom, v1.ConditionReady, "False", v1.ReasonInvalid)
	expect.Change(w.t, w.master, other, func(object *v1.AddonCatalogue) { object.Spec.Addons = []v1.Addon{addonOf("own", "2.0.0")} })
	w.expectVersions("seed", "own", "2.0.0")
	w.steady(func() error {
		for _, name := range []string{"argo", "shared"} {
			merged := w.merged(name)
			if err := w.client("seed").Get(t.Context(), client.ObjectKeyFromObject(merged), merged); err != nil {
				return err
			}
			if versions := merged.Spec.Addons[0].Versions; versions[len(versions)-1].Version != "1.0.0" {
				return fmt.Errorf("%s has versions %v", name, versions)
			}
		}
		return nil
	})

	expect.Change(w.t, w.master, custom, func(object *v1.AddonCatalogue) { object.Spec.Addons = []v1.Addon{addonOf("argo", "3.0.0")} })
	w.expectVersions("seed", "argo", "3.0.0")
	expect.Gone(t, w.client("seed"), w.merged("shared"))
}

func TestAnOlderSeedIsReportedAndNotLooped(t *testing.T) {
	w := newWorld(t)
	seed := w.client("seed")
	older := w.olderCRD(seed)
	t.Cleanup(func() { w.put(older) })
	w.seed("remote", kubeconfigOf("seed"))
	w.start()
	custom := w.catalogueOf("custom", map[string][]string{"keda": {"1.0.0"}, "plain": {"1.0.0"}})
	for i := range custom.Spec.Addons {
		if custom.Spec.Addons[i].Name == "keda" {
			custom.Spec.Addons[i].DocumentationURL = "https://example.com"
		}
	}
	expect.Create(w.t, w.master, custom)
	w.expectVersions("seed", "plain", "1.0.0")
	expect.Object(t, w.master, custom, func(object *v1.AddonCatalogue) error {
		if rows := object.Status.Seeds; len(rows) != 1 || !strings.Contains(rows[0].Message, "SeedOutdated") {
			return fmt.Errorf("rows %+v", rows)
		}
		return nil
	})
	plain := w.expectVersions("seed", "plain", "1.0.0")
	version, master := plain.ResourceVersion, custom.ResourceVersion
	w.steady(func() error {
		if err := seed.Get(t.Context(), client.ObjectKeyFromObject(plain), plain); err != nil {
			return err
		}
		if err := w.master.Get(t.Context(), client.ObjectKeyFromObject(custom), custom); err != nil {
			return err
		}
		if plain.ResourceVersion != version || custom.ResourceVersion != master {
			return fmt.Errorf("something is written over and over")
		}
		return nil
	})
}

// olderCRD takes a field out of the seed's CRD, and gives the CRD as it was.
func (w *world) olderCRD(seed client.Client) *apiextensionsv1.CustomResourceDefinition {
	w.t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "addoncatalogues.kubermatic.k8c.io"}}
	reader, err := client.New(fleet.Shared().Cluster("seed").Config, client.Options{Scheme: extensionsScheme()})
	if err != nil {
		w.t.Fatal(err)
	}
	expect.Read(w.t, reader, crd)
	before := crd.DeepCopy()
	spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	delete(spec.Properties["addons"].Items.Schema.Properties, "documentationURL")
	w.put(crd)
	// The API server takes a moment to serve another schema.
	probe := &v1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceDefault, GenerateName: "probe-"}}
	probe.Spec.Addons = []v1.Addon{addonOf("probe", "1.0.0")}
	probe.Spec.Addons[0].DocumentationURL = "https://example.com"
	strict := client.WithFieldValidation(seed, metav1.FieldValidationStrict)
	expect.Eventually(w.t, expect.Patience, func() error {
		if err := strict.Create(w.t.Context(), probe.DeepCopy(), client.DryRunAll); err == nil {
			return fmt.Errorf("the field is still known")
		}
		return nil
	})
	return before
}

func extensionsScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		panic(err) // constants
	}
	return scheme
}

// put gives the seed a CRD.
func (w *world) put(crd *apiextensionsv1.CustomResourceDefinition) {
	w.t.Helper()
	writer, err := client.New(fleet.Shared().Cluster("seed").Config, client.Options{Scheme: extensionsScheme()})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx := context.Background()                    // it is called when the test is over, too
	err = expect.PastConflicts(ctx, func() error { // the API server writes conditions
		live := &apiextensionsv1.CustomResourceDefinition{}
		if err := writer.Get(ctx, client.ObjectKeyFromObject(crd), live); err != nil {
			return err
		}
		live.Spec = crd.Spec
		return writer.Update(ctx, live)
	})
	if err != nil {
		w.t.Fatal(err)
	}
}
