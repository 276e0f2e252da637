package addoninstallation_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/test/expect"
)

// inKubeSystem creates an installation with target namespace kube-system.
func (w *world) inKubeSystem(addon string, change func(*kubermaticv1.AddonInstallation)) *kubermaticv1.AddonInstallation {
	w.t.Helper()
	object := &kubermaticv1.AddonInstallation{Spec: kubermaticv1.AddonInstallationSpec{
		AddonRef: kubermaticv1.AddonReference{Name: kubermaticv1.AddonName(addon)}, TargetNamespace: "kube-system", CreateNamespace: true,
	}}
	object.Namespace, object.Name = w.namespace, addon
	if change != nil {
		change(object)
	}
	w.create(object)
	return object
}

func (w *world) kubeSystem() *corev1.Namespace {
	w.t.Helper()
	found := &corev1.Namespace{}
	expect.Eventually(w.t, expect.Patience, func() error { // the API server creates it after some time
		return w.seed.Get(w.t.Context(), client.ObjectKey{Name: "kube-system"}, found)
	})
	return found
}

// node has the objects of monitoring stacks and network plugins: an object in kube-system, and a namespace for
// privileged pods that is named like the cluster's.
func node(name string) map[string]string {
	return map[string]string{
		"namespace.yaml": "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: kube-" + name +
			"\n  labels: {pod-security.kubernetes.io/enforce: privileged}\n",
		"there.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: there, namespace: kube-" + name + "}\n",
		"here.yaml":  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata: {version: '{{ .Variables.version }}'}\n",
	}
}

// TestCustomAddonsWriteToKubeSystem fails if kube-* and pod security are only for Core catalogues (NotAllowed), if
// createNamespace counts as the add-on's own Namespace kube-system, and if a manifest of that Namespace is allowed.
func TestCustomAddonsWriteToKubeSystem(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	name := w.unique("node")
	w.offer(name, kubermaticv1.CatalogueCustom, w.content("1.0.0", kubermaticv1.MethodGoTemplate, name, node(name)))
	before := w.kubeSystem()
	object := w.inKubeSystem(name, nil)
	w.expectReady(object, kubermaticv1.ReasonReady)
	if _, is := w.configMaps("kube-" + name)["there"]; !is {
		t.Error("there is no ConfigMap there")
	}

	files := node(name)
	files["own.yaml"] = "apiVersion: v1\nkind: Namespace\nmetadata: {name: kube-system, labels: {pod-security.kubernetes.io/enforce: baseline}}\n"
	w.offer(name, kubermaticv1.CatalogueCustom, w.content("1.1.0", kubermaticv1.MethodGoTemplate, name+"-own", files))
	w.expectReady(object, kubermaticv1.ReasonNotAllowed, "Namespace kube-system", "belongs to the cluster")
	if version := w.configMaps("kube-system")[name].Data["version"]; version != "1.0.0" {
		t.Errorf("version %q is there, want what was there before", version)
	}
	expect.Delete(t, w.seed, object)
	expect.Gone(t, w.seed, object)
	if _, stays := w.configMaps("kube-system")[name]; stays {
		t.Error("its ConfigMap stays in kube-system")
	}
	if diff := cmp.Diff(before, w.kubeSystem()); diff != "" {
		t.Errorf("Namespace kube-system (-before +after):\n%s", diff)
	}
}

// TestRestrictedSeedKeepsCustomAddonsOut fails if allowed ignores the restrictions, or its message does not name the
// flag; it also fails if it refuses Core catalogues.
func TestRestrictedSeedKeepsCustomAddonsOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.restrictions = catalogue.Restrictions{KubeNamespaces: true, PodSecurity: true}
	w.start()
	name := w.unique("closed")
	content := w.content("1.0.0", kubermaticv1.MethodGoTemplate, name, node(name))
	w.offer(name, kubermaticv1.CatalogueCustom, content)
	w.offer(name+"-labels", kubermaticv1.CatalogueCustom, content)
	w.offer(name+"-core", kubermaticv1.CatalogueCore, content)
	w.expectReady(w.inKubeSystem(name, nil), kubermaticv1.ReasonNotAllowed, `targetNamespace "kube-system"`,
		"--restrict-custom-addons=kube-namespaces")
	w.expectReady(w.install(name+"-labels", ""), kubermaticv1.ReasonNotAllowed, "Namespace kube-"+name, "--restrict-custom-addons=pod-security")
	w.expectReady(w.inKubeSystem(name+"-core", ofCore), kubermaticv1.ReasonReady)
}

func ofCore(object *kubermaticv1.AddonInstallation) { object.Spec.CoreAddon = true }

// AC40: A tenant's add-on in kube-system gets nothing of a core add-on's there, with any annotations: no object, no
// revision of its Helm release and not the release itself. It fails if decide of pkg/install/apply adopts objects of an
// existing installation (its case Anothers taken out), and if releaseNameFree allows both the release.
func TestCoreObjectsInKubeSystemAreNotForAdoption(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.renderers = bothMethods()
	w.start()
	core := w.unique("core")
	chart := webChart("1.0.0", core)
	delete(chart, "templates/settings.yaml")
	chart["templates/secret.yaml"] = "apiVersion: v1\nkind: Secret\nmetadata: {name: " + core + "}\nstringData: {password: core}\n"
	thief := func(name, manifest string) kubermaticv1.AddonVersion {
		return w.content("1.0.0", kubermaticv1.MethodGoTemplate, name, map[string]string{"object.yaml": manifest})
	}
	w.offer(core, kubermaticv1.CatalogueCore, w.content("1.0.0", kubermaticv1.MethodHelm, core, chart))
	w.expectReady(w.inKubeSystem(core, ofCore), kubermaticv1.ReasonReady)
	before := w.secretsOf(core)
	if len(before) != 2 {
		t.Fatalf("there are Secrets %v, want the add-on's and its release", before)
	}

	adopts := func(object *kubermaticv1.AddonInstallation) {
		object.Annotations = map[string]string{kubermaticv1.AnnotationAdopt: "true"}
	}
	var thieves []*kubermaticv1.AddonInstallation
	for stolen := range before {
		addon := fmt.Sprintf("thief-%s-%d", w.id, len(thieves))
		w.offer(addon, kubermaticv1.CatalogueCustom, thief(addon, "apiVersion: v1\nkind: Secret\nmetadata: {name: "+stolen+"}\nstringData: {password: thief}\n"))
		object := w.inKubeSystem(addon, adopts)
		w.expectReady(object, kubermaticv1.ReasonObjectExists, fmt.Sprintf("belongs to add-on installation %q", core))
		thieves = append(thieves, object)
	}
	release := fmt.Sprintf("thief-%s-release", w.id)
	version := w.content("1.0.0", kubermaticv1.MethodHelm, release, webChart("1.0.0"))
	version.Template.Helm = &kubermaticv1.HelmOptions{ReleaseName: core}
	w.offer(release, kubermaticv1.CatalogueCustom, version)
	object := w.inKubeSystem(release, adopts)
	w.expectReady(object, kubermaticv1.ReasonReleaseNameTaken, core)
	for _, one := range append(thieves, object) {
		expect.Delete(t, w.seed, one)
		expect.Gone(t, w.seed, one)
	}
	if diff := cmp.Diff(before, w.secretsOf(core)); diff != "" {
		t.Errorf("Secrets of the core add-on (-before +after):\n%s", diff)
	}
}

// secretsOf are the versions of a core add-on's Secrets in kube-system, by name.
func (w *world) secretsOf(core string) map[string]string {
	w.t.Helper()
	var list corev1.SecretList
	expect.List(w.t, w.seed, &list, client.InNamespace("kube-system"))
	found := map[string]string{}
	for _, item := range list.Items {
		if item.Name == core || item.Labels["owner"] == "helm" && item.Labels["name"] == core {
			found[item.Name] = string(item.UID) + " " + item.ResourceVersion
		}
	}
	return found
}
