package distributor_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
)

// rightsAccount is the ServiceAccount of deploy/seed/rights.yaml.
const rightsAccount = "trellis-distributor"

// deploy/seed/rights.yaml is what docs/spec/operation.md tells to give the kubeconfig of a Seed: a
// whole life of merged catalogues needs no more.
func TestTheListedRightsAreEnoughOnASeed(t *testing.T) {
	w := newWorld(t)
	seed := w.client("seed")
	expect.Create(w.t, seed, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.platform}})
	w.grantReported(seed)
	w.seed("narrow", w.narrowKubeconfig(seed))
	expect.Create(w.t, w.master, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.platform, Name: "git", Labels: map[string]string{v1.LabelUse: v1.UseSource},
			Annotations: map[string]string{v1.AnnotationHosts: "git.example.com", v1.AnnotationUsedBy: "AddonCatalogue/custom"},
		},
		Data: map[string][]byte{"username": []byte("robot"), "password": []byte("first")},
	})
	custom := w.catalogueOf("custom", map[string][]string{"falco": {"1.0.0"}, "velero": {"1.0.0"}})
	for i := range custom.Spec.Addons {
		custom.Spec.Addons[i].Versions[0].Source.Git.SecretRef = &v1.LocalReference{Name: "git"}
	}
	expect.Create(w.t, w.master, custom)
	w.start()
	w.expectVersions("seed", "falco", "1.0.0")
	w.expectVersions("seed", "velero", "1.0.0")
	w.expectSourceSecrets(seed, "first")
	w.expectCondition(custom, v1.ConditionReady, "True", v1.ReasonDistributed)
	expect.Object(t, seed, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.platform, Name: v1.SecretCatalogueKey}},
		func(*corev1.Secret) error { return nil })

	// So do copies of sets, with their Secrets and the watch of what the seed says.
	set := w.setOf("monitoring")
	set.Spec.Addons[0].AddonRef = v1.AddonReference{Name: "falco", Version: "1.x"}
	set.Spec.Addons[0].PlatformSecretRef = &v1.PlatformSecretReference{Name: "shared"}
	w.platformSecret("shared", "a: 1")
	expect.Create(w.t, w.master, set)
	places["narrow"] = "seed"
	defer delete(places, "narrow")
	w.seedSays("narrow", set, "r1", done(1), behind(2))
	w.expectGate("narrow", set, "r1/2")
	editSet(w, set, func(set *v1.AddonSet) { set.Spec.Priority = 3 })
	w.seedSays("narrow", set, "r2", done(1), done(2))
	w.expectSet(set, v1.ConditionReady, "True", v1.ReasonComplete)
	editSet(w, set, func(set *v1.AddonSet) {
		metav1.SetMetaDataAnnotation(&set.ObjectMeta, v1.AnnotationConfirmDeletion, set.Name)
	})
	expect.Delete(t, w.master, set)
	expect.Gone(t, w.master, set)
	expect.Gone(t, seed, w.copyOf(set))
	expect.Gone(t, seed, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.catalogue, Name: "shared"}})

	expect.Change(w.t, w.master, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.platform, Name: "git"}}, func(object *corev1.Secret) {
		object.Data["password"] = []byte("second")
	})
	w.expectSourceSecrets(seed, "second")
	expect.Change(w.t, w.master, custom, func(object *v1.AddonCatalogue) { object.Spec.Addons = []v1.Addon{addonOf("falco", "2.0.0")} })
	w.expectVersions("seed", "falco", "2.0.0")
	expect.Gone(t, seed, w.merged("velero"))
	w.expectSourceSecrets(seed)
	w.expectCondition(custom, v1.ConditionReady, "True", v1.ReasonDistributed)
}

// grantReported applies deploy/seed/rights.yaml, with the namespaces of this world in place of the
// charts'.
func (w *world) grantReported(seed client.Client) {
	w.t.Helper()
	root, err := binaries.Root()
	if err != nil {
		w.t.Fatal(err)
	}
	reported, err := os.ReadFile(filepath.Join(root, "deploy", "seed", "rights.yaml"))
	if err != nil {
		w.t.Fatal(err)
	}
	here := strings.NewReplacer(
		"kubermatic.k8c.io", "kubermatic.k8c.io", v1.SecretCatalogueKey, v1.SecretCatalogueKey,
		"kubermatic", w.platform, "addon-catalogue", w.catalogue)
	for document := range strings.SplitSeq(here.Replace(string(reported)), "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			w.t.Fatal(err)
		}
		expect.Create(w.t, seed, object)
	}
}

// narrowKubeconfig has a token of the account, as the page tells to make one.
func (w *world) narrowKubeconfig(seed client.Client) []byte {
	w.t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.platform, Name: rightsAccount}}
	var whole map[string]any
	if err := yaml.Unmarshal(fleet.Shared().Cluster("seed").Kubeconfig, &whole); err != nil {
		w.t.Fatal(err)
	}
	user, ok := whole["users"].([]any)[0].(map[string]any)
	if !ok {
		w.t.Fatal("the kubeconfig has no user")
	}
	user["user"] = map[string]any{"token": expect.Token(w.t, seed, account)}
	narrow, err := yaml.Marshal(whole)
	if err != nil {
		w.t.Fatal(err)
	}
	return narrow
}

// expectSourceSecrets waits until the seed has copies with exactly these passwords.
func (w *world) expectSourceSecrets(seed client.Client, passwords ...string) {
	w.t.Helper()
	expect.Eventually(w.t, expect.Patience, func() error {
		var list corev1.SecretList
		if err := seed.List(w.t.Context(), &list, client.InNamespace(w.catalogue)); err != nil {
			return err
		}
		var have []string
		for _, item := range list.Items {
			have = append(have, string(item.Data["password"]))
		}
		if fmt.Sprint(have) != fmt.Sprint(passwords) {
			return fmt.Errorf("passwords of %d copies are not those that are wanted", len(have))
		}
		return nil
	})
}
