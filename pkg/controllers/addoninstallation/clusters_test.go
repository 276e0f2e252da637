package addoninstallation

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/fairqueue"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
)

func inCluster(cluster, name string) *kubermaticv1.AddonInstallation {
	made := &kubermaticv1.AddonInstallation{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
	made.Spec.ClusterName, made.Spec.AddonRef.Name = cluster, "web"
	return made
}

// TestChangesWakeTheirOwnClusterOnly fails if a change in one cluster wakes installations of another one, or if an
// installation of KKP that names its cluster and one that does not miss each other's changes.
func TestChangesWakeTheirOwnClusterOnly(t *testing.T) {
	for _, test := range []struct {
		why           string
		of            target.Ref
		own, other    *kubermaticv1.AddonInstallation
		wakes, orders bool
	}{
		{
			"the same cluster", target.Ref{Kind: target.KindClusterAPI, Namespace: "team", Name: "one"},
			inCluster("one", "own"), inCluster("one", "other"), true, true,
		},
		{
			"a neighbour", target.Ref{Kind: target.KindClusterAPI, Namespace: "team", Name: "one"},
			inCluster("one", "own"), inCluster("two", "other"), false, false,
		},
		{
			"KKP's, of which one names it", target.Ref{Kind: target.KindKKP, Namespace: "team", Name: "amber"},
			inCluster("amber", "own"), inCluster("", "other"), true, true,
		},
	} {
		var known dependents
		known.note(test.of, test.own, nil)
		if got := len(known.of(test.other)) > 0; got != test.wakes {
			t.Errorf("%s: who depends on the other is woken: %t", test.why, got)
		}
		var waiting awaiting
		waiting.note(test.of, client.ObjectKeyFromObject(test.own), []string{"other"})
		if got := len(waiting.of(test.other)) > 0; got != test.orders {
			t.Errorf("%s: who waits for the other is woken: %t", test.why, got)
		}
	}
}

// TestTurnsAreThoseOfAClusterAndItsTenant fails if clusters of a namespace use each other's share of the queue, or if
// KKP's clusters get fewer workers than before.
func TestTurnsAreThoseOfAClusterAndItsTenant(t *testing.T) {
	var known clusters
	one, kkp := inCluster("one", "a"), inCluster("amber", "b")
	known.expect(one)
	known.expect(kkp)
	known.note(kkp, target.Ref{Kind: target.KindKKP, Namespace: "team", Name: "amber"})
	for installation, want := range map[*kubermaticv1.AddonInstallation]fairqueue.Cluster{
		one: {Tenant: "team", Name: "one"}, kkp: {Tenant: "team"}, inCluster("x", "unknown"): {Tenant: "team"},
	} {
		if got := known.of(client.ObjectKeyFromObject(installation)); got != want {
			t.Errorf("%s takes a turn of %v, want %v", installation.Name, got, want)
		}
	}
}

// TestOwnersAreTheClusterAsItIs fails if a previous Cluster of the name stays an owner, if an owner of another kind is
// removed, or if an existing owner is written again.
func TestOwnersAreTheClusterAsItIs(t *testing.T) {
	owner := metav1.OwnerReference{APIVersion: "cluster.x-k8s.io/v1beta2", Kind: "Cluster", Name: "one", UID: "now"}
	previous, older := owner, owner
	previous.UID, older.APIVersion = "former", "cluster.x-k8s.io/v1beta1"
	other := metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "Cluster", Name: "one", UID: "other"}
	for _, test := range []struct {
		why        string
		have, want []metav1.OwnerReference
	}{
		{"none", nil, []metav1.OwnerReference{owner}},
		{"it is there", []metav1.OwnerReference{other, owner}, []metav1.OwnerReference{other, owner}},
		{"a former one", []metav1.OwnerReference{previous, other}, []metav1.OwnerReference{other, owner}},
		{"a version of before", []metav1.OwnerReference{older}, []metav1.OwnerReference{owner}},
	} {
		if diff := cmp.Diff(test.want, ownedBy(test.have, owner)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.why, diff)
		}
	}
}
