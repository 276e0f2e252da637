package addoninstallation_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/given"
)

// expectValue waits until Ready has the reason, and the user cluster that value.
func (w *world) expectValue(object *kubermaticv1.AddonInstallation, reason, value string) {
	w.t.Helper()
	expect.Object(w.t, w.seed, object, func(object *kubermaticv1.AddonInstallation) error {
		state := "False"
		if reason == kubermaticv1.ReasonReady {
			state = "True"
		}
		if err := expect.Condition(object, kubermaticv1.ConditionReady, state, reason); err != nil {
			return err
		}
		if have := w.installed(object); have != value {
			return fmt.Errorf("the user cluster has value %q, want %q", have, value)
		}
		return nil
	})
}

// TestValuesReachTheCluster fails if a change of an object that valuesFrom names, or of data that a valuesTemplate
// reads, does not reach the user cluster automatically, or if a missing one removes installed objects.
func TestValuesReachTheCluster(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	t.Run("a marked Secret", func(t *testing.T) {
		w.t = t
		w.publish("valued", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"})
		object := given.Installation(w.namespace, "valued", "valued", w.unique("valued"), given.NewNamespace)
		object.Spec.ValuesFrom = []kubermaticv1.ValuesSource{{SecretRef: &kubermaticv1.KeyReference{Name: "own"}}}
		w.create(object)
		w.expectValue(object, kubermaticv1.ReasonValuesMissing, "")
		secret := given.MarkedSecret(kubermaticv1.UseValues, w.namespace, "own", map[string][]byte{"values.yaml": []byte("version: one")})
		w.create(secret)
		w.expectValue(object, kubermaticv1.ReasonReady, "one")
		secret.Data["values.yaml"] = []byte("version: two")
		expect.Update(t, w.seed, secret)
		w.expectValue(object, kubermaticv1.ReasonReady, "two")
		expect.Delete(t, w.seed, secret)
		w.expectValue(object, kubermaticv1.ReasonValuesMissing, "two")
	})
	t.Run("a valuesTemplate", func(t *testing.T) {
		w.t = t
		w.publish("templated", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"})
		catalogue := &kubermaticv1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Namespace: w.catalogue, Name: "templated"}}
		expect.Read(t, w.seed, catalogue)
		catalogue.Spec.Addons[0].Versions[0].ValuesTemplate = `version: "for {{ .Cluster.Version }}"`
		expect.Update(t, w.seed, catalogue)
		object := w.install("templated", "")
		w.expectValue(object, kubermaticv1.ReasonReady, "for 1.36.3")
		w.running("v1.36.4")
		w.expectValue(object, kubermaticv1.ReasonReady, "for 1.36.4")
	})
}

// TestNonDeterministicIsReportedAndNothingChanges fails if a random rendering is not reported, or if a new random value
// reaches the user cluster.
func TestNonDeterministicIsReportedAndNothingChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, err := w.sources.Commit("random", map[string]string{
		"settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {version: 'x{{ randAlphaNum 20 }}'}\n" +
			"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: same}\n",
	}); err != nil {
		t.Fatal(err)
	}
	w.start()
	w.publish("random", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"})
	catalogue := &kubermaticv1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Namespace: w.catalogue, Name: "random"}}
	expect.Read(t, w.seed, catalogue)
	catalogue.Spec.Addons[0].Versions[0].Source.Git.Remote = kubermaticv1.GitRemote(w.sources.GitURL + "/random.git")
	expect.Update(t, w.seed, catalogue)
	object := w.install("random", "")
	expect.HasCondition(t, w.seed, object, expect.Is(kubermaticv1.ConditionReady, "True", kubermaticv1.ReasonReady))
	before := w.settings(object)
	w.edit(object, func(object *kubermaticv1.AddonInstallation) {
		object.Annotations = map[string]string{kubermaticv1.AnnotationReconcileAt: "now"}
	})
	w.expectEvent(kubermaticv1.EventNonDeterministic, object, "ConfigMap "+object.Spec.TargetNamespace+"/settings:")
	expect.HasCondition(t, w.seed, object, expect.Is(kubermaticv1.ConditionReady, "True", kubermaticv1.ReasonReady))
	w.afterAnother(object)
	if after := w.settings(object); after.ResourceVersion != before.ResourceVersion {
		t.Errorf("the user cluster was written: %v, before %v", after.Data, before.Data)
	}
}

// settings are those in the user cluster.
func (w *world) settings(object *kubermaticv1.AddonInstallation) *corev1.ConfigMap {
	w.t.Helper()
	settings := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: object.Spec.TargetNamespace, Name: "settings"}
	expect.Get(w.t, w.seed, key, settings)
	return settings
}
