package sets_test

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	kit "github.com/trellis-addons/trellis/test/world"
)

// The seeds of a world that has two. Amber and cedar are north's user clusters, birch and dune south's; amber and birch are canaries.
const (
	north = "north"
	south = "south"
)

// everywhere are the user clusters of both seeds.
var everywhere = []string{amber, birch, cedar, dune}

// newRegions has a master and two seeds with API servers of their own, the program of the master manager, and on both seeds all
// controllers. It returns when set tools has put content "one" everywhere.
func newRegions(t *testing.T) (*world, *v1.AddonSet) {
	t.Helper()
	w := worldOf(t, masterServer, map[string]string{north: platformServer, south: southServer}, []placed{
		{amber, north, amber, "0"}, {cedar, north, platformServer, "1"}, {birch, south, birch, "0"}, {dune, south, dune, "1"},
	})
	w.offer(v1.CatalogueCustom, "web", w.version("1.0.0", "one"))
	w.startMaster()
	w.seeds[north].run()
	w.seeds[south].stop = w.seeds[south].run()
	of := w.set("tools")
	w.has("web", "one", everywhere...)
	w.says(of, v1.ReasonComplete, counts(v1.ClusterCounts{Selected: 4, Current: 4}))
	return w, of
}

// startMaster runs the program of the master manager, until it is killed or the test ends.
func (w *world) startMaster() {
	w.t.Helper()
	w.program = kit.RunMaster(w.t, fleet.Shared().Cluster(masterServer).Kubeconfig, w.platform, w.catalogue)
}

// loseMaster kills the master's manager and its API server.
func (w *world) loseMaster() {
	w.program.Kill()
	fleet.Shared().Cluster(masterServer).StopServer()
}

// startServer starts an API server that was killed.
func (w *world) startServer(name string) {
	w.t.Helper()
	expect.NoError(w.t, fleet.Shared().Cluster(name).StartServer(w.t.Context()))
}

// backup what an API server has now; the returned function puts it back.
func (w *world) backup(name string) (restore func()) {
	w.t.Helper()
	cluster := fleet.Shared().Cluster(name)
	had, err := cluster.Backup(w.t.Context())
	expect.NoError(w.t, err)
	return func() {
		w.t.Helper()
		expect.NoError(w.t, cluster.Restore(w.t.Context(), had))
	}
}

// repaired deletes the settings of an installation in user clusters, and waits until they are there again, with that text.
func (w *world) repaired(name, text string, clusters ...string) {
	w.t.Helper()
	for _, cluster := range clusters {
		expect.Delete(w.t, w.users[cluster], w.settings(cluster, w.now(cluster, name)))
	}
	w.has(name, text, clusters...)
}

// more is a set that puts the add-on into another namespace of each user cluster.
func (w *world) more() *v1.AddonSet {
	w.t.Helper()
	return w.set("later", func(spec *v1.AddonSetSpec) {
		spec.Addons[0].Name, spec.Addons[0].TargetNamespace, spec.Addons[0].CreateNamespace = "more", w.target+"-more", true
	})
}

// asMade tells an object that was made anew from one that was not.
func asMade(object client.Object) string {
	return fmt.Sprintf("%T %s/%s %s", object, object.GetNamespace(), object.GetName(), object.GetUID())
}

// asIs tells an object that was made anew, or written, from one that was not.
func asIs(object client.Object) string {
	return asMade(object) + " " + object.GetResourceVersion()
}

// asRolled is asIs for what no change of a text changes; settings that were written are the same as before.
func asRolled(object client.Object) string {
	if _, isSettings := object.(*corev1.ConfigMap); isSettings {
		return asMade(object)
	}
	return asIs(object)
}

// objects of installations in a namespace of user clusters, as a text.
func (w *world) objects(shown func(client.Object) string, namespace string, clusters ...string) string {
	w.t.Helper()
	var text string
	for _, cluster := range clusters {
		for _, list := range []client.ObjectList{&corev1.ConfigMapList{}, &corev1.PersistentVolumeClaimList{}, &appsv1.ReplicaSetList{}} {
			err := w.users[cluster].List(w.t.Context(), list, client.InNamespace(namespace))
			if err == nil {
				err = meta.EachListItem(list, func(item runtime.Object) error {
					text += cluster + " " + shown(item.(client.Object)) + "\n"
					return nil
				})
			}
			expect.NoError(w.t, err)
		}
	}
	if text == "" {
		w.t.Fatalf("%q have no objects in namespace %s", clusters, namespace)
	}
	return text
}

// objectsStay fails the test where objects of user clusters are written, made or removed.
func (w *world) objectsStay(namespace string, clusters ...string) {
	w.t.Helper()
	w.unchanged(soak, func() string { return w.objects(asIs, namespace, clusters...) })
}

// uids of installations of a name.
func (w *world) uids(name string, clusters ...string) string {
	w.t.Helper()
	var text string
	for _, cluster := range clusters {
		text += fmt.Sprintf("%s %s\n", cluster, w.now(cluster, name).UID)
	}
	return text
}

// rolled waits until content is everywhere and the set is complete. The canaries of both seeds were first.
func (w *world) rolled(of *v1.AddonSet, text string) {
	w.t.Helper()
	w.has("web", text, everywhere...)
	w.says(of, v1.ReasonComplete, counts(v1.ClusterCounts{Selected: 4, Current: 4}))
	w.inOrder("web", amber, cedar, dune)
	w.inOrder("web", birch, cedar, dune)
}

// expectSame fails the test where two texts differ.
func (w *world) expectSame(what, before, after string) {
	w.t.Helper()
	if before != after {
		w.t.Errorf("%s are\n%safter\n%s", what, after, before)
	}
}
