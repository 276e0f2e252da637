package clusterupgrade_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/cmd/wiring"
	"github.com/trellis-addons/trellis/pkg/cluster"
	"github.com/trellis-addons/trellis/pkg/controllers/addonset"
	"github.com/trellis-addons/trellis/pkg/controllers/clusterupgrade"
	"github.com/trellis-addons/trellis/pkg/mergedcatalogue"
	"github.com/trellis-addons/trellis/pkg/target"
	"github.com/trellis-addons/trellis/test/clusterapi"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	kit "github.com/trellis-addons/trellis/test/world"
)

// perRelease is the copy of a set for one minor release of Kubernetes.
func (w *world) perRelease(name, kubernetes, version string) {
	w.t.Helper()
	kit.Create(w.t, w.client, &v1.AddonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.catalogue, Name: name, Labels: map[string]string{v1.LabelRole: v1.RoleCopy}},
		Spec: v1.AddonSetSpec{
			ClusterSelector: &metav1.LabelSelector{}, Constraints: &v1.Constraints{K8sVersion: v1.VersionRange(kubernetes)},
			Addons: []v1.AddonSetItem{{
				Name: "cni", AddonRef: v1.AddonReference{Name: "cni", Version: version}, TargetNamespace: "kube-system",
			}},
		},
	})
}

// startSets runs the controller of sets beside ours.
func (w *world) startSets() {
	w.t.Helper()
	made := kit.SeedOf(w.t, fleet.Shared().Cluster("management").Config, w.catalogue, cluster.Kinds{
		Served:        []schema.GroupKind{target.KindClusterAPI},
		ControlPlanes: []schema.GroupResource{{Group: clusterapi.ControlPlaneGroup, Resource: "fleetcontrolplanes"}},
	})
	marks := mergedcatalogue.New(logr.Discard())
	made.SetUp(clusterupgrade.New(wiring.ClusterUpgrade(made.Seed, marks, clusterupgrade.Options{CatalogueNamespace: w.catalogue, Rules: w.rules})))
	made.SetUp(addonset.New(wiring.AddonSet(made.Seed, marks, addonset.Options{CatalogueNamespace: w.catalogue, StatusInterval: time.Millisecond})))
	made.Run()
}

// made waits until a set has the add-on at a version, and gives it.
func (w *world) made(by, version string) *v1.AddonInstallation {
	w.t.Helper()
	one := &v1.AddonInstallation{ObjectMeta: metav1.ObjectMeta{Namespace: w.key.Namespace, Name: "one.cni"}}
	return expect.Object(w.t, w.client, one, func(found *v1.AddonInstallation) error {
		if got := found.Labels[v1.LabelSet] + " " + found.Spec.AddonRef.Version; got != by+" "+version {
			return fmt.Errorf("it is of %s", got)
		}
		return nil
	})
}

// A set per minor release: the one of the next version takes the add-on over before the control plane moves, at once and in place, and the
// upgrade goes on since all is right, not by its timeout. Red where sets go by the version above alone, and where what is asked for after
// the upgrade is taken from the set before it.
func TestASetPerReleaseUpgradesWithoutItsTimeout(t *testing.T) {
	w := newWorld(t, clusterapi.Options{})
	w.perRelease("release-36", "~1.36", "1.0.0")
	w.perRelease("release-37", "~1.37", "1.1.0")
	w.startSets()
	first := w.made("release-36", "1.0.0")
	w.installed("1.0.0", "1.36.3", metav1.ConditionTrue)
	w.says("False", v1.ReasonNotUpgrading)

	w.ask(after)
	w.says("True", v1.ReasonBeforeControlPlane)
	early := w.made("release-37", "1.1.0")
	if early.UID != first.UID {
		t.Error("it was made anew")
	}
	expect.Always(t, steady, func() error { return w.isAt(before, before) })
	w.installed("1.1.0", "1.36.3", metav1.ConditionTrue)
	w.at(after, after) // what is pinned, and fits, holds no workers
	w.says("False", v1.ReasonNotUpgrading)
	last := w.made("release-37", "1.1.0")
	if last.UID != first.UID || last.Annotations[v1.AnnotationMoved] != early.Annotations[v1.AnnotationMoved] {
		t.Errorf("it moved twice, or was made anew: %v, and then %v", early.ObjectMeta, last.ObjectMeta)
	}
	w.end()
}

// With one version a minor release nothing fits both: the control plane is not held, and workers wait until the next set has brought its
// version. Red where what is asked for after the upgrade is taken from the set before it: the control plane waits to its timeout then.
func TestOneVersionPerReleaseHoldsTheWorkersAlone(t *testing.T) {
	w := newWorld(t, clusterapi.Options{})
	w.perRelease("release-36", "~1.36", "1.0.0")
	w.perRelease("release-37", "~1.37", "2.0.0")
	w.startSets()
	first := w.made("release-36", "1.0.0")
	w.installed("1.0.0", "1.36.3", metav1.ConditionTrue)
	w.says("False", v1.ReasonNotUpgrading)

	w.ask(after)
	w.says("True", v1.ReasonBeforeWorkers)
	if next := w.made("release-37", "2.0.0"); next.UID != first.UID {
		t.Error("it was made anew")
	}
	w.installed("2.0.0", "1.37.1", metav1.ConditionTrue)
	w.says("False", v1.ReasonNotUpgrading)
	w.at(after, after)
	w.end()
}
