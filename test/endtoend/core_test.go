package endtoend_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/given"
	"github.com/trellis-addons/trellis/test/sandbox"
)

// coreStory is what happens to a cluster's core add-ons, as its API servers tell it.
const coreStory = `the cluster has default-storage-class 1.0.0, kube-proxy 1.36.0, rbac 1.0.0; AddonsReady True
its image is registry.example/kube-proxy:v1.36.0
Kubernetes is 1.37: it has default-storage-class 1.0.0, kube-proxy 1.37.0, rbac 1.0.0; AddonsReady True
its image is registry.example/kube-proxy:v1.37.0
the list brings page, and void, which has nothing for the cluster: it has default-storage-class 1.0.0, kube-proxy 1.37.0, page 1.0.0, rbac 1.0.0, void 1.0.0; AddonsReady True
admission refuses to delete page, and says how it goes for good
past admission page is deleted and stays: DeletionBlocked InCoreSet, Ready True
edited by hand while it is deleted, it is put back
out of the list it goes: it has default-storage-class 1.0.0, kube-proxy 1.37.0, rbac 1.0.0; AddonsReady True
the API server is dead and the cluster deleted: its namespace goes
`

// story gathers what is seen.
type story struct {
	t        *testing.T
	box      *sandbox.Sandbox
	cluster  sandbox.UserCluster
	reported strings.Builder
}

func (s *story) report(format string, arguments ...any) {
	fmt.Fprintf(&s.reported, format+"\n", arguments...)
}

// testCoreStory: core add-ons come by themselves, follow Kubernetes, can't be deleted, go when they leave the set, and hold up
// no cluster that goes. It turns red when a deletion is carried out while the protection stands.
func testCoreStory(t *testing.T, box *sandbox.Sandbox) {
	s := &story{t: t, box: box, cluster: box.UserClusters()[2]}
	seed, server := box.Client(s.cluster.Seed), box.Fleet.Cluster(s.cluster.Name)
	s.report("the cluster has %s", s.has("kube-proxy 1.36.0"))
	s.report("its image is %s", s.image("v1.36.0"))

	server.StopServer()
	server.Release = binaries.Newer
	expect.NoError(t, server.StartServer(t.Context()))
	s.probe()
	s.report("Kubernetes is 1.37: it has %s", s.has("kube-proxy 1.37.0"))
	s.report("its image is %s", s.image("v1.37.0"))

	commit(t, box, "page", map[string]string{"settings.yaml": settingsManifest(`"core"`)})
	expect.Ensure(t, box.Client(sandbox.Master), catalogueOf("page", gitVersion(box, "page", "")))
	commit(t, box, "void", map[string]string{"settings.yaml": "{{ if eq .Cluster.Name \"another\" }}\n" + settingsManifest(`"void"`) + "{{ end }}\n"})
	expect.Ensure(t, box.Client(sandbox.Master), catalogueOf("void", gitVersion(box, "void", "")))
	s.list("[{name: page, addonRef: {name: page}, targetNamespace: page, createNamespace: true}, {name: void, addonRef: {name: void}, " +
		"targetNamespace: void, createNamespace: true}]")
	s.report("the list brings page, and void, which has nothing for the cluster: it has %s", s.has("void 1.0.0"))
	s.deletePage(seed)
	s.list("[]")
	expect.Gone(t, seed, s.installation("page"))
	s.report("out of the list it goes: it has %s", s.has("rbac 1.0.0"))

	server.StopServer()
	expect.Delete(t, seed, &kkpv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: s.cluster.Name}})
	expect.Gone(t, seed, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.cluster.Namespace()}})
	s.report("the API server is dead and the cluster deleted: its namespace goes")
	if diff := cmp.Diff(coreStory, s.reported.String()); diff != "" {
		t.Errorf("the story (-want +got):\n%s", diff)
	}
}

// unasked is a client of a user of the cluster itself, about whom the webhooks are not asked.
func (s *story) unasked() client.Client {
	s.t.Helper()
	config := rest.CopyConfig(s.box.Fleet.Cluster(s.cluster.Seed).Config)
	config.Impersonate.UserName = "system:serviceaccount:kube-system:namespace-controller"
	made, err := client.New(config, client.Options{Scheme: sandbox.Scheme()})
	expect.NoError(s.t, err)
	return made
}

// deletePage deletes a core installation, and sees that it is looked after as before.
func (s *story) deletePage(seed client.Client) {
	page := s.installation("page")
	expectRefusal(s.t, seed.Delete(s.t.Context(), page.DeepCopy()), "is a core add-on of cluster", "custom-core-addons")
	s.report("admission refuses to delete page, and says how it goes for good")
	expect.Delete(s.t, s.unasked(), page)
	expect.Object(s.t, seed, page, func(found *kubermaticv1.AddonInstallation) error {
		if err := expect.Condition(found, kubermaticv1.ConditionDeletionBlocked, "True", kubermaticv1.ReasonInCoreSet); err != nil {
			return err
		}
		return expect.Condition(found, kubermaticv1.ConditionReady, "True", "")
	})
	s.report("past admission page is deleted and stays: DeletionBlocked InCoreSet, Ready True")
	user := s.box.Client(s.cluster.Name)
	edited := settings(s.t, user, "page")
	edited.Data["value"] = "edited"
	expect.Update(s.t, user, edited)
	expect.Object(s.t, user, edited.DeepCopy(), func(found *corev1.ConfigMap) error {
		if found.Data["value"] != "core" {
			return fmt.Errorf("the value is %q", found.Data["value"])
		}
		return nil
	})
	s.report("edited by hand while it is deleted, it is put back")
}

func (s *story) installation(name string) *kubermaticv1.AddonInstallation {
	return &kubermaticv1.AddonInstallation{ObjectMeta: metav1.ObjectMeta{Namespace: s.cluster.Namespace(), Name: name}}
}

// has waits until all core add-ons are ready with one of them in a version, and lists them.
func (s *story) has(one string) string {
	s.t.Helper()
	seed, text := s.box.Client(s.cluster.Seed), ""
	available := &kubermaticv1.AddonCatalogue{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.cluster.Namespace(), Name: kubermaticv1.AvailableCatalogue},
	}
	expect.Object(s.t, seed, available, func(found *kubermaticv1.AddonCatalogue) error {
		var list kubermaticv1.AddonInstallationList
		if err := seed.List(s.t.Context(), &list, client.InNamespace(s.cluster.Namespace())); err != nil {
			return err
		}
		var names []string
		for i := range list.Items {
			installation := &list.Items[i]
			if !installation.Spec.CoreAddon {
				continue
			}
			if err := expect.Condition(installation, kubermaticv1.ConditionReady, "True", ""); err != nil {
				return fmt.Errorf("%s: %w", installation.Name, err)
			}
			names = append(names, installation.Name+" "+installation.Status.Version)
		}
		if text = strings.Join(names, ", "); !strings.Contains(text, one) {
			return fmt.Errorf("it has %s", text)
		}
		if found.Status.Core == nil || int(found.Status.Core.Ready) != len(names) {
			return fmt.Errorf("status.core is %+v, of %s", found.Status.Core, text)
		}
		return expect.Condition(found, kubermaticv1.ConditionAddonsReady, "True", "")
	})
	return text + "; AddonsReady True"
}

// image waits for the image of kube-proxy in the user cluster.
func (s *story) image(version string) string {
	s.t.Helper()
	proxy := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-proxy"}}
	expect.Object(s.t, s.box.Client(s.cluster.Name), proxy, func(found *appsv1.DaemonSet) error {
		if image := found.Spec.Template.Spec.Containers[0].Image; !strings.HasSuffix(image, version) {
			return fmt.Errorf("the image is %s", image)
		}
		return nil
	})
	return proxy.Spec.Template.Spec.Containers[0].Image
}

// probe has the cluster's version looked at now: a changed kubeconfig Secret does that.
func (s *story) probe() {
	s.t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.cluster.Namespace(), Name: "internal-admin-kubeconfig"}}
	expect.Annotate(s.t, s.box.Client(s.cluster.Seed), secret, "example.com/touched", "yes")
}

// list writes the custom core list of the seed.
func (s *story) list(text string) {
	s.t.Helper()
	object := given.CoreList(sandbox.Namespace, text)
	seed := s.box.Client(s.cluster.Seed)
	expect.Ensure(s.t, seed, object.DeepCopy())
	expect.Update(s.t, seed, object)
}
