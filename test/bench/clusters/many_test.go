package clusters

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/clusterapi"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/given"
	"github.com/trellis-addons/trellis/test/long"
	"github.com/trellis-addons/trellis/test/world"
)

const (
	team, others = "team", "others"
	// mostOfNeighbours is how often installations of neighbours may be reconciled meanwhile, by their own clocks: one wake of all of them
	// is 57 reconciliations, and one look for drift, which is due every ten minutes, as many.
	mostOfNeighbours = 20
)

// TestAClusterThatGoesCostsItsNeighboursNothing: twenty Clusters share a namespace, another one elsewhere has the name of one of them, which
// is deleted and made anew. Red when an object of another Cluster is written, here or in its user cluster, when another one's user cluster is
// asked for anything of it, when its own is asked once it is being deleted, when an installation or a record of it stays, or when the
// neighbours' installations are woken, even if nothing comes of it.
func TestAClusterThatGoesCostsItsNeighboursNothing(t *testing.T) {
	long.Skip(t, "fleet-sizes", "it takes twenty Clusters")
	p := newPlatform(t, 4)
	expect.Create(t, p.client, world.Namespace(team), world.Namespace(others))
	own := p.servers[3]
	doomed, namesake := p.member(team, "doomed", own), p.member(others, "doomed", p.servers[0])
	members := []member{doomed, namesake}
	for i := range 19 {
		members = append(members, p.member(team, fmt.Sprintf("c%02d", i), p.servers[i%3]))
	}
	p.install()
	p.offer(v1.CatalogueCustom, "own", "")
	p.add(members...)
	for _, one := range members {
		expect.Create(t, p.client, given.Installation(one.Namespace, one.Name+"-own", "own", "default", func(made *v1.AddonInstallation) {
			made.Spec.ClusterName = one.Name
		}))
	}
	m := p.start("--v=5") // it logs each reconciliation
	begin := time.Now()
	expect.Eventually(t, 5*time.Minute, func() error { return p.areReady(3*len(members), team, others) })
	expect.Eventually(t, expect.Patience, func() error { return p.areHeld(members...) })
	t.Logf("%d installations in %d Clusters are ready after %s", 3*len(members), len(members), time.Since(begin).Round(time.Second))
	of := p.uid(doomed)
	before := p.quiet(m)
	marks, runs := p.marks(), m.runs()
	isNeighbour := func(namespace, name string) bool { return namespace != team || !strings.HasPrefix(name, "doomed") }
	neighbours := m.reconciled("addoninstallation", isNeighbour)

	gone := p.remove(m, doomed)
	expect.Eventually(t, expect.Patience, func() error { return p.hasNothing(doomed, of) })
	t.Logf("installations and records are gone %s after the Cluster was", time.Since(gone).Round(time.Second))
	again := p.member(team, "doomed", p.servers[1]) // its own has what the former left
	again.token = "team.doomed.again"
	p.add(again)
	expect.Eventually(t, expect.Patience, func() error { return p.areReady(3*len(members)-1, team, others) }) // nobody asks for its own one
	expect.Eventually(t, expect.Patience, func() error { return p.areHeld(again) })
	after := p.quiet(m)
	made := m.runs()
	for controller := range made {
		made[controller] -= runs[controller]
	}
	t.Logf("passes meanwhile: %v", made)
	neighbours = m.reconciled("addoninstallation", isNeighbour) - neighbours
	t.Logf("of %d reconciliations of installations, %d were of neighbours", made["addoninstallation"], neighbours)
	if made["addoninstallation"] == neighbours || neighbours > mostOfNeighbours {
		t.Errorf("%d of %d reconciliations were of neighbours' installations, %d at most", neighbours, made["addoninstallation"], mostOfNeighbours)
	}

	for _, all := range []map[string]string{before, after} {
		maps.DeleteFunc(all, func(object, _ string) bool { return p.isOf(object, "doomed") })
	}
	if diff := cmp.Diff(before, after); diff != "" || len(before) < 20*6 {
		t.Errorf("of %d objects of others, before and after:\n%s", len(before), diff)
	}
	p.expectOnlyOwnCalls(marks, again)
	if calls := own.callsSince(marks[own]); len(calls) > 0 {
		t.Errorf("%d calls to the user cluster of a Cluster that is deleted, such as %v", len(calls), calls[0])
	}
}

// remove deletes a Cluster as Cluster API does: it is being deleted for a while, and its kubeconfig goes with it. The time is that of its end.
func (p *platform) remove(m *manager, one member) time.Time {
	p.t.Helper()
	const controller = "addoninstallation"
	before := m.runs()[controller]
	const finalizer = "cluster.cluster.x-k8s.io"
	finalizers := func(list string) {
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":`+list+`}}`))
		expect.Patch(p.t, p.client, one.object(clusterapi.ClusterKind), patch)
	}
	finalizers(`["` + finalizer + `"]`)
	expect.Delete(p.t, p.client, one.object(clusterapi.ClusterKind))
	expect.Eventually(p.t, expect.Patience, func() error {
		if m.runs()[controller] == before {
			return errors.New("no installation was reconciled while its Cluster is being deleted")
		}
		return nil
	})
	expect.Get(p.t, p.client, one.NamespacedName, one.object(clusterapi.ClusterKind))
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: one.Namespace, Name: one.Name + "-kubeconfig"}}
	for _, object := range []client.Object{secret, one.object(clusterapi.ControlPlaneKind)} {
		expect.Delete(p.t, p.client, object)
	}
	finalizers("[]")
	expect.Gone(p.t, p.client, one.object(clusterapi.ClusterKind))
	return time.Now()
}

func (p *platform) uid(one member) string {
	p.t.Helper()
	found := one.object(clusterapi.ClusterKind)
	expect.Get(p.t, p.client, one.NamespacedName, found)
	return string(found.GetUID())
}

// hasNothing says what is left of a Cluster on the management cluster: installations, records, what it is offered.
func (p *platform) hasNothing(one member, uid string) error {
	var left []string
	for object := range p.written() {
		if p.isOf(object, one.Name) || strings.Contains(object, uid) {
			left = append(left, object)
		}
	}
	// What is in its user cluster goes with that, and the identity stays for a day: a Cluster may come back over the same user cluster.
	left = slices.DeleteFunc(left, func(object string) bool {
		return !strings.HasPrefix(object, "management ") || strings.HasPrefix(object, "management ConfigMap "+platformNamespace)
	})
	if len(left) > 0 {
		slices.Sort(left)
		return fmt.Errorf("left are %q", left)
	}
	return nil
}

// isOf says whether an object, as written names it, is of the Cluster of a name in the namespace that all share.
func (p *platform) isOf(object, name string) bool {
	parts := strings.Fields(object)
	switch {
	case parts[0] == p.servers[3].cluster.Name: // nobody else has it
		return true
	case parts[0] == p.servers[1].cluster.Name: // it has that one when it is made anew
		return strings.HasPrefix(parts[3], name)
	case parts[2] == platformNamespace:
		return strings.HasSuffix(parts[3], team+"."+name)
	}
	return parts[2] == team && (strings.HasPrefix(parts[3], name) || parts[3] == v1.AvailableCatalogue+"-"+name || strings.Contains(object, " of "+name+" "))
}

// written are all objects that a manager writes, as "server kind namespace name", records with their Cluster, by resourceVersion.
func (p *platform) written() map[string]string {
	p.t.Helper()
	found := map[string]string{}
	kinds := []schema.GroupVersionKind{
		v1.GroupVersion.WithKind("AddonInstallation"), v1.GroupVersion.WithKind("AddonCatalogue"), clusterapi.ClusterKind,
		corev1.SchemeGroupVersion.WithKind("Secret"), corev1.SchemeGroupVersion.WithKind("ConfigMap"),
	}
	for _, kind := range kinds {
		for _, namespace := range []string{team, others, platformNamespace} {
			p.list(p.fleet.Cluster("management"), kind, namespace, found)
		}
	}
	for _, one := range p.servers {
		for _, kind := range []string{"Secret", "ConfigMap", "Event"} {
			for _, namespace := range []string{"default", "kube-system"} {
				p.list(one.cluster, corev1.SchemeGroupVersion.WithKind(kind), namespace, found)
			}
		}
	}
	return found
}

func (p *platform) list(of *fleet.Cluster, kind schema.GroupVersionKind, namespace string, into map[string]string) {
	p.t.Helper()
	reader, err := client.New(of.Config, client.Options{Scheme: p.client.Scheme(), Mapper: p.client.RESTMapper()})
	expect.NoError(p.t, err)
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	expect.List(p.t, reader, list, client.InNamespace(namespace))
	for _, item := range list.Items {
		name := strings.Join([]string{of.Name, kind.Kind, namespace, item.GetName()}, " ")
		for _, owner := range item.GetOwnerReferences() {
			name += fmt.Sprintf(" of %s %s", owner.Name, owner.UID)
		}
		into[name] = item.GetResourceVersion()
	}
}

// quiet waits until the manager has nothing to reconcile, and gives what is there then.
func (p *platform) quiet(m *manager) map[string]string {
	p.t.Helper()
	p.settle(m)
	return p.written()
}

// marks are how many calls each server had so far.
func (p *platform) marks() map[*server]int {
	marks := map[*server]int{}
	for _, one := range p.servers {
		marks[one] = len(one.callsSince(0))
	}
	return marks
}

// expectOnlyOwnCalls fails on writes to user clusters of others, and on any call there that names the Cluster that was made anew.
func (p *platform) expectOnlyOwnCalls(since map[*server]int, again member) {
	p.t.Helper()
	reads := 0
	for _, one := range p.servers {
		for _, call := range one.callsSince(since[one]) {
			if call.Who == again.token && one == again.over {
				continue
			}
			reads++
			isNamesake := call.Who == others+"."+again.Name
			if call.Writes() || strings.Contains(call.Path, again.Name) && !isNamesake {
				p.t.Errorf("of others, %s is asked as %s: %s %s", one.cluster.Name, call.Who, call.Method, call.Path)
			}
		}
	}
	p.t.Logf("user clusters of others were asked %d times meanwhile", reads)
}
