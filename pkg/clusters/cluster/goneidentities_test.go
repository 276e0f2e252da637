package cluster

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/given"
)

// TestIdentitiesOfClustersThatAreGone fails when a ConfigMap is removed at the first check, before its Cluster was
// gone for a day, because of a list alone, while installations exist that a returning Cluster continues, or although
// a Cluster of the name has another UID; and when one of a Cluster that is gone stays.
func TestIdentitiesOfClustersThatAreGone(t *testing.T) {
	p := newPlace(t, "leaving")
	seed := seedWithClusters(t)
	namespace := p.kkp.Status.NamespaceName
	for _, name := range []string{"left-lives", "left-returned", "left-gone", "left-installed", "left-status", "left-unknown"} {
		identity := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: identityPrefix + name, Labels: map[string]string{v1.LabelUserCluster: "u"}},
			Data:       map[string]string{keyCluster: "former", keyUserCluster: "u", keyOrigin: "former"},
		}
		expect.Create(t, seed, identity)
	}
	foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "other", Labels: map[string]string{v1.LabelUserCluster: "u"}}}
	expect.Create(t, seed, foreign)
	createCluster(t, seed, "left-lives", "cluster-left-lives")
	install(t, seed, "cluster-left-installed", nil)
	install(t, seed, namespace, &v1.ClusterIdentity{Name: "left-status", UID: "former"})

	clock := testingclock.NewFakePassiveClock(time.Now())
	finder := NewKKPFinder(withoutClusters{seed}, unreadable{seed, "left-unknown"}, nil)
	finder.clock = clock
	identities := NewIdentities(seed, seed, finder, namespace)
	identities.now = clock.Now
	identities.known["left-gone"] = bond{cluster: "former", userCluster: "u", origin: "former", version: "1"}
	look := func(want bool) {
		t.Helper()
		again, err := identities.RemoveGone(t.Context())
		if again != want || err == nil || !strings.Contains(err.Error(), "left-unknown") {
			t.Errorf("again %t, %v; want %t, and the Cluster that can't be read in the error", again, err, want)
		}
	}
	stays := func(want ...string) {
		t.Helper()
		var list corev1.ConfigMapList
		expect.List(t, seed, &list, client.InNamespace(namespace), client.HasLabels{v1.LabelUserCluster})
		var have []string
		for _, item := range list.Items {
			have = append(have, strings.TrimPrefix(item.Name, identityPrefix+"left-"))
		}
		if diff := cmp.Diff(want, have); diff != "" {
			t.Errorf("ConfigMaps (-want +got):\n%s", diff)
		}
	}
	look(true)
	stays("gone", "installed", "lives", "returned", "status", "unknown", "other")
	createCluster(t, seed, "left-returned", "cluster-left-returned")
	clock.SetTime(clock.Now().Add(GoneInterval))
	look(true) // a Cluster that exists is never gone: after a stale list, it is requested again
	stays("gone", "installed", "lives", "returned", "status", "unknown", "other")
	if _, kept := identities.known["left-gone"]; kept {
		t.Error("memory has a ConfigMap as it was before its Cluster was noted to be gone")
	}
	clock.SetTime(clock.Now().Add(retention - time.Second))
	look(true)
	stays("gone", "installed", "lives", "returned", "status", "unknown", "other")
	identities.known["left-gone"] = bond{cluster: "former", userCluster: "u", origin: "former", version: "1"}
	clock.SetTime(clock.Now().Add(time.Second))
	look(true)
	stays("installed", "lives", "returned", "status", "unknown", "other")
	if _, kept := identities.known["left-gone"]; kept {
		t.Error("memory keeps what is gone")
	}
}

func install(t *testing.T, seed client.Client, namespace string, of *v1.ClusterIdentity) {
	t.Helper()
	made := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	expect.Ensure(t, seed, made)
	object := given.Installation(namespace, "web", "web", "web")
	expect.Create(t, seed, object)
	object.Status.Cluster = of
	expect.UpdateStatus(t, seed, object)
}

// withoutClusters is a stale cache: it lists no Clusters yet.
type withoutClusters struct{ client.Reader }

func (w withoutClusters) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if _, isClusters := list.(*kkpv1.ClusterList); isClusters {
		return nil
	}
	return w.Reader.List(ctx, list, options...)
}

// unreadable is an API server that fails when one Cluster is requested.
type unreadable struct {
	client.Reader
	name string
}

func (u unreadable) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if key.Name == u.name {
		return errors.New("the answer was cut off")
	}
	return u.Reader.Get(ctx, key, object, options...)
}
