package boot

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/cmd/wiring"
	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/clusterapi"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/long"
)

// The two Clusters, of one namespace: the core list gives one its add-ons, an AddonSet the other one.
const (
	listed = "listed"
	inSet  = "in-set"
)

// firstObject is how long a Cluster that is up has nothing at most: 2 s is the bar, where nothing else runs. A machine may be busy, so it is
// half of the 30 s after which a manager that nothing wakes looks again.
const firstObject = 15 * time.Second

// TestNewClustersGetTheirAddonsInOrder: two Clusters of a ClusterClass come up at the same time. The network, the cloud provider and
// storage are applied one after the other, though none of them works yet; the rest once all of them do. Red when a control plane that comes
// up wakes nobody, when slots don't count or wait until what comes before works, when the rest waits for what is applied only, when one
// Cluster's add-ons count for the other, or when releases have other names than items.
func TestNewClustersGetTheirAddonsInOrder(t *testing.T) {
	long.Skip(t, "cluster-api", "Clusters boot with the whole of Cluster API")
	p := newPlatform(t)
	p.offer()
	p.start()
	p.expectSettled()
	boots := []*boot{p.boot(listed), p.boot(inSet)}
	for _, b := range boots {
		b.create()
	}
	for _, b := range boots {
		b.expectFirst()
		b.expectApplied("network", "cloud", "bricks")
		b.expectHeld("logs", "mail")
	}
	one, other := boots[0], boots[1]
	for _, b := range boots {
		b.works("cloud")
		b.works("bricks")
		b.expectReady("cloud", "bricks")
		b.expectHeld("logs", "mail")
	}
	for _, b := range []*boot{one, other} {
		began := b.works("network")
		b.expectApplied("logs", "mail")
		b.expectBehind(began, "logs", "mail")
		if b == one {
			other.expectHeld("logs", "mail") // its own network does not work
		}
	}
	for _, b := range boots {
		b.expectOrder()
		b.expectInstallations()
		b.expectReleases()
	}
}

// boot is the start of one Cluster.
type boot struct {
	*platform
	name string
	user client.WithWatch
	seen *observations
}

// boot watches a Cluster that is yet to be made, and its user cluster.
func (p *platform) boot(name string) *boot {
	p.t.Helper()
	user, err := client.NewWithWatch(fleet.Shared().Cluster(name).Config, client.Options{Scheme: wiring.Scheme()})
	expect.NoError(p.t, err)
	b := &boot{platform: p, name: name, user: user, seen: &observations{}}
	b.seen.watch(p.t, p.client, b.cluster(), isInitialised)
	b.seen.watch(p.t, p.client, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: name + "-kubeconfig"}}, nil)
	for _, one := range items() {
		own := metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: one.name}
		b.seen.watch(p.t, user, &corev1.ConfigMap{ObjectMeta: own}, nil)
		b.seen.watch(p.t, user, &appsv1.Deployment{ObjectMeta: own}, nil)
	}
	return b
}

// create makes the Cluster.
func (b *boot) create() {
	b.t.Helper()
	expect.Create(b.t, b.client, clusterapi.Cluster{
		Namespace: team, Name: b.name, Version: "v" + binaries.Older, Labels: map[string]string{"by": b.name}, Deployments: []string{"workers"},
	}.Object())
}

// cluster is the Cluster, to be read.
func (b *boot) cluster() *unstructured.Unstructured {
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(clusterapi.ClusterKind)
	found.SetNamespace(team)
	found.SetName(b.name)
	return found
}

func isInitialised(cluster *unstructured.Unstructured) bool {
	is, _, _ := unstructured.NestedBool(cluster.Object, "status", "initialization", "controlPlaneInitialized")
	return is
}

// installation is that of an item.
func (b *boot) installation(item string) *v1.AddonInstallation {
	return &v1.AddonInstallation{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: b.name + "." + item}}
}

// expectFirst sees that the network begins as soon as there are kubeconfig and control plane.
func (b *boot) expectFirst() {
	b.t.Helper()
	expect.Eventually(b.t, expect.Patience, func() error {
		if len(b.seen.all("network")) == 0 {
			return errors.New("nothing is there")
		}
		return nil
	})
	up, kubeconfig := b.seen.first(b.name), b.seen.first(b.name+"-kubeconfig")
	if up.at.IsZero() || kubeconfig.at.IsZero() {
		b.t.Fatalf("%s: the network is there before the control plane, %s, or its kubeconfig, %s", b.name, up, kubeconfig)
	}
	ready := up.at
	if kubeconfig.at.After(ready) {
		ready = kubeconfig.at
	}
	took := b.seen.first("network").at.Sub(ready)
	b.t.Logf("%s: the first object is there %s after kubeconfig and control plane", b.name, took.Round(time.Millisecond))
	if took > firstObject {
		b.t.Errorf("%s: the first object came %s after kubeconfig and control plane, %s at most", b.name, took, firstObject)
	}
}

func (b *boot) expectApplied(names ...string) {
	b.t.Helper()
	for _, name := range names {
		expect.HasCondition(b.t, b.client, b.installation(name), expect.Is(v1.ConditionApplied, "True", ""))
	}
}

func (b *boot) expectReady(names ...string) {
	b.t.Helper()
	for _, name := range names {
		expect.HasCondition(b.t, b.client, b.installation(name), expect.Is(v1.ConditionReady, "True", v1.ReasonReady))
	}
}

// expectHeld sees that these wait for their turn, and nothing of them is in the user cluster.
func (b *boot) expectHeld(names ...string) {
	b.t.Helper()
	for _, name := range names {
		expect.HasCondition(b.t, b.client, b.installation(name), expect.Is(v1.ConditionApplied, "False", v1.ReasonWaitingForOrder))
		if there := b.seen.all(name); len(there) > 0 {
			b.t.Errorf("%s: %s waits, and is there: %s", b.name, name, there)
		}
	}
}

// works says of an item's Deployment that its pods run, and gives the revision of the API server at which they do.
func (b *boot) works(name string) int64 {
	b.t.Helper()
	found := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: name}}
	expect.Read(b.t, b.user, found)
	found.Status = appsv1.DeploymentStatus{
		ObservedGeneration: found.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1,
		Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue},
			{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
		},
	}
	expect.UpdateStatus(b.t, b.user, found)
	return revisionOf(b.t, found)
}

// expectBehind sees that nothing of some items came before a revision of the API server.
func (b *boot) expectBehind(revision int64, names ...string) {
	b.t.Helper()
	for _, name := range names {
		for _, one := range b.objects(name) {
			if one.revision < revision {
				b.t.Errorf("%s: %s came before the network worked, at revision %d: %s", b.name, name, revision, one)
			}
		}
	}
}

// expectOrder sees in what order objects came, by the API server's own revisions and, to the second, its times.
func (b *boot) expectOrder() {
	b.t.Helper()
	order := []string{"network", "cloud", "bricks", "logs"}
	for i, name := range order[1:] {
		for _, later := range b.objects(name) {
			for _, before := range b.objects(order[i]) {
				if later.revision < before.revision || later.applied.Before(&before.applied) {
					b.t.Errorf("%s: %s, %s, came before %s, %s", b.name, name, later, order[i], before)
				}
			}
		}
	}
}

// objects are the sightings of an item's two objects.
func (b *boot) objects(item string) (all []observation) {
	b.t.Helper()
	expect.Eventually(b.t, expect.Patience, func() error {
		all = b.seen.all(item)
		if len(all) != 2 || all[0].applied.IsZero() || all[1].applied.IsZero() {
			return fmt.Errorf("of %s there are %s", item, all)
		}
		return nil
	})
	return all
}

// expectInstallations sees that they have the Cluster's name and end with it, and the items' names as releases.
func (b *boot) expectInstallations() {
	b.t.Helper()
	cluster := b.cluster()
	expect.Read(b.t, b.client, cluster)
	var list v1.AddonInstallationList
	expect.List(b.t, b.client, &list, client.InNamespace(team))
	var got, want []string
	for _, found := range list.Items {
		if found.Spec.ClusterName != b.name {
			continue
		}
		owners := found.OwnerReferences
		if len(owners) != 1 || owners[0].UID != cluster.GetUID() || owners[0].APIVersion != clusterapi.ClusterKind.GroupVersion().String() {
			b.t.Errorf("%s ends with %v", found.Name, owners)
		}
		got = append(got, fmt.Sprintf("%s, release %q, in %s", found.Name, found.Spec.ReleaseName, found.Spec.TargetNamespace))
	}
	for _, one := range items() {
		release := "" // templates have none
		if one.methods[b.name] == v1.MethodHelm {
			release = one.name
		}
		want = append(want, fmt.Sprintf("%s.%s, release %q, in kube-system", b.name, one.name, release))
	}
	slices.Sort(want)
	if diff := gocmp.Diff(want, got); diff != "" {
		b.t.Errorf("installations (-want +got):\n%s", diff)
	}
}

// expectReleases sees what the helm program shows: the charts among the items, by their names.
func (b *boot) expectReleases() {
	b.t.Helper()
	cache, err := binaries.Cache()
	expect.NoError(b.t, err)
	program, err := binaries.Find(cache, "helm", "")
	expect.NoError(b.t, err)
	home := b.t.TempDir()
	kubeconfig := filepath.Join(home, "kubeconfig")
	expect.NoError(b.t, os.WriteFile(kubeconfig, fleet.Shared().Cluster(b.name).Kubeconfig, 0o600))
	command := exec.CommandContext(b.t.Context(), program, "list", "--all-namespaces", "--all", "--output", "json", "--kubeconfig", kubeconfig)
	command.Env = append(os.Environ(), "HOME="+home)
	output, err := command.Output()
	expect.NoError(b.t, err)
	var got, want []release
	expect.NoError(b.t, json.Unmarshal(output, &got))
	for _, one := range items() {
		if one.methods[b.name] == v1.MethodHelm {
			want = append(want, release{one.name, metav1.NamespaceSystem, one.name + "-1.0.0", "deployed"})
		}
	}
	slices.SortFunc(want, func(a, b release) int { return cmp.Compare(a.Name, b.Name) })
	if diff := gocmp.Diff(want, got); diff != "" {
		b.t.Errorf("%s: helm list (-want +got):\n%s", b.name, diff)
	}
}

// release is a line of helm list.
type release struct{ Name, Namespace, Chart, Status string }
