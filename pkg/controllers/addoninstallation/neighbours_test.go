package addoninstallation_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
)

// releaseOwners are the owners' labels of a release's revisions, by Secret.
func (w *world) releaseOwners(namespace string) map[string]string {
	w.t.Helper()
	var list corev1.SecretList
	expect.List(w.t, w.seed, &list, client.InNamespace(namespace), client.MatchingLabels{"owner": "helm"})
	owners := map[string]string{}
	for _, item := range list.Items {
		owners[item.Name] = item.Labels[kubermaticv1.LabelInstallation]
	}
	return owners
}

// charts commits several charts at once, by folder; the function returns the version with one of them.
func (w *world) charts(charts map[string]map[string]string) func(version, folder string) kubermaticv1.AddonVersion {
	w.t.Helper()
	files := map[string]string{}
	for folder, chart := range charts {
		for name, text := range chart {
			files[folder+"/"+name] = text
		}
	}
	all := w.content("", kubermaticv1.MethodHelm, "charts", files)
	return func(version, folder string) kubermaticv1.AddonVersion {
		made := *all.DeepCopy()
		made.Version, made.Source.Git.Path = version, "charts/"+folder
		made.Values = &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"version":%q}`, version)}
		return made
	}
}

// TestReleaseOfAnInstallationThatExistsIsRefused fails if an installation continues the Helm release of a younger one
// (CheckRelease without found.Installation): it would use the release's Secrets, and prune the other's objects; it also
// fails if it can't continue once the other is gone.
func TestReleaseOfAnInstallationThatExistsIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.renderers = bothMethods()
	w.start()
	namespace := w.unique("agents")
	elder := webChart("1.0.0")
	delete(elder, "templates/settings.yaml")
	elder["templates/elder.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: elder}\n"
	charts := w.charts(map[string]map[string]string{"elder": elder, "younger": webChart("1.0.0", "extra")})
	version := func(number, path, release string) kubermaticv1.AddonVersion {
		made := charts(number, path)
		if release != "" {
			made.Template.Helm = &kubermaticv1.HelmOptions{ReleaseName: release}
		}
		return made
	}
	install := func(addon, release string) *kubermaticv1.AddonInstallation {
		object := &kubermaticv1.AddonInstallation{Spec: kubermaticv1.AddonInstallationSpec{
			AddonRef:        kubermaticv1.AddonReference{Name: kubermaticv1.AddonName(addon), Version: release},
			TargetNamespace: namespace, CreateNamespace: true, DeletionPolicy: kubermaticv1.DeletionOrphan,
		}}
		object.Namespace, object.Name = w.namespace, addon
		w.create(object)
		return object
	}
	w.offer("elder", kubermaticv1.CatalogueCustom, version("1.0.0", "elder", ""), version("1.1.0", "elder", "agent"))
	w.offer("younger", kubermaticv1.CatalogueCustom, version("1.0.0", "younger", "agent"))
	first := install("elder", "1.0.0")
	w.expectReady(first, kubermaticv1.ReasonReady)
	second := install("younger", "1.0.0")
	w.expectInstalled(second, "1.0.0", "")
	before, objects := w.releaseOwners(namespace), w.configMaps(namespace)

	w.adopt(first)
	w.want(first, "1.1.0")
	w.expectReady(first, kubermaticv1.ReasonReleaseNameTaken, `installation "younger" has Helm release "agent"`, "another name, targetNamespace or releaseName")
	if diff := cmp.Diff(before, w.releaseOwners(namespace)); diff != "" {
		t.Errorf("owners of the revisions (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(uids(objects), uids(w.configMaps(namespace))); diff != "" {
		t.Errorf("objects (-before +after):\n%s", diff)
	}

	expect.Delete(t, w.seed, second)
	w.expectEvent(kubermaticv1.EventRemoved, second, w.cluster.Name, "Orphan")
	expect.Gone(t, w.seed, second)
	w.edit(first, func(object *kubermaticv1.AddonInstallation) {
		object.Annotations[kubermaticv1.AnnotationReconcileAt] = "now"
	})
	w.expectReady(first, kubermaticv1.ReasonReady)
	if diff := cmp.Diff([]string{"1 superseded", "2 deployed"}, w.helmHistory("agent", namespace)); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
}

// TestOrphanedReleaseIsGoneOnWith fails if the revisions that deletionPolicy Orphan left are not continued
// (helmrelease.Find only for another label): the copy would begin at revision 1, below the one of `helm list`; and if
// objects of only these revisions are deleted, or adopt is required.
func TestOrphanedReleaseIsGoneOnWith(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.renderers = bothMethods()
	w.start()
	charts := w.charts(map[string]map[string]string{"old": webChart("1.0.0"), "new": webChart("1.1.0", "extra")})
	w.offer("left", kubermaticv1.CatalogueCustom, charts("1.0.0", "old"), charts("1.1.0", "new"))
	object := w.install("left", "1.0.0")
	namespace := object.Spec.TargetNamespace
	w.expectInstalled(object, "1.0.0", "1.1.0")
	w.edit(object, func(object *kubermaticv1.AddonInstallation) {
		object.Spec.AddonRef.Version, object.Spec.DeletionPolicy = "1.1.0", kubermaticv1.DeletionOrphan
	})
	w.expectInstalled(object, "1.1.0", "")
	expect.Eventually(t, expect.Patience, func() error {
		if diff := cmp.Diff([]string{"1 superseded", "2 deployed"}, w.helmHistory("left", namespace)); diff != "" {
			return fmt.Errorf("history (-want +got):\n%s", diff)
		}
		return nil
	})
	expect.Delete(t, w.seed, object)
	expect.Gone(t, w.seed, object)

	again := w.install("left", "1.0.0")
	w.expectInstalled(again, "1.0.0", "1.1.0")
	if diff := cmp.Diff([]string{"1 superseded", "2 superseded", "3 deployed"}, w.helmHistory("left", namespace)); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
	if _, stays := w.configMaps(namespace)["extra"]; !stays {
		t.Error("what was left behind on purpose was removed")
	}
	w.expectEvent(kubermaticv1.EventAdopted, again, `"left"`, "revision 2", "left behind", "stay")
}
