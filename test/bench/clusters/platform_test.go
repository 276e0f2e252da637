package clusters

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/cmd/wiring"
	"github.com/trellis-addons/trellis/test/clusterapi"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/gate"
	"github.com/trellis-addons/trellis/test/given"
	"github.com/trellis-addons/trellis/test/standins"
	"github.com/trellis-addons/trellis/test/world"
)

// Names on every platform.
const (
	platformNamespace  = "kubermatic"
	catalogueNamespace = "addon-catalogue"
	// seed is who the manager is at the gate before the management cluster.
	seed = "seed"
	// kubernetes is the version of all Clusters.
	kubernetes = "v1.36.3"
)

// ofClusterAPI are the flags of a manager that serves Cluster API's Clusters alone.
func ofClusterAPI() []string {
	return []string{
		"--cluster-kinds=cluster-api", "--hold-upgrades", "--concurrency=10",
		"--cluster-api-providers=fleetcontrolplanes." + clusterapi.ControlPlaneGroup,
	}
}

// platform is a management cluster that has none of KKP's kinds, and API servers that are user clusters.
type platform struct {
	t      testing.TB
	fleet  *fleet.Fleet
	client client.WithWatch
	// gate is before the management cluster.
	gate    *gate.Gate
	sources *fleet.Sources
	servers []*server
}

// server is an API server that several Clusters have, and what was asked of it.
type server struct {
	cluster *fleet.Cluster
	gate    *gate.Gate

	mutex sync.Mutex
	calls []gate.Call
}

// newPlatform has so many API servers for user clusters.
func newPlatform(t testing.TB, servers int) *platform {
	t.Helper()
	all := []fleet.ClusterOptions{{Name: "management", Controllers: true}}
	for i := range servers {
		all = append(all, fleet.ClusterOptions{Name: fmt.Sprintf("user-%d", i)})
	}
	p := &platform{t: t, fleet: fleet.ForTest(t, all...)}
	management := p.fleet.Cluster("management")
	err := errors.Join(fleet.InstallCRDs(t.Context(), management.Config, fleet.CRDs(t)[0]), clusterapi.InstallCRDs(t.Context(), management.Config))
	expect.NoError(t, err)
	if p.client, err = client.NewWithWatch(management.Config, client.Options{Scheme: wiring.Scheme()}); err != nil {
		t.Fatal(err)
	}
	p.gate = gate.New(t, management)
	for _, options := range all[1:] {
		behind := p.fleet.Cluster(options.Name)
		p.servers = append(p.servers, &server{cluster: behind, gate: gate.New(t, behind)})
	}
	expect.Create(t, p.client, world.Namespace(platformNamespace), world.Namespace(catalogueNamespace))
	return p
}

// start runs the manager for Clusters of Cluster API.
func (p *platform) start(flags ...string) *manager {
	p.t.Helper()
	return startManager(p.t, p.fleet, p.gate.Kubeconfig(p.t, seed), append(ofClusterAPI(), flags...)...)
}

// offer has an add-on, which is a ConfigMap named by its Cluster.
func (p *platform) offer(kind v1.CatalogueType, addon v1.AddonName, slot v1.Slot) {
	p.t.Helper()
	p.startSources()
	template := fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Cluster.Name }}-%s'}\n", addon)
	if _, err := p.sources.Commit(string(addon), map[string]string{"settings.yaml": template}); err != nil {
		p.t.Fatal(err)
	}
	source := given.Git(p.sources.GitURL+"/"+string(addon)+".git", "")
	p.publish(kind, v1.Addon{Name: addon, Slot: slot, Versions: []v1.AddonVersion{
		{Version: "1.0.0", Template: &v1.Template{Method: v1.MethodGoTemplate}, Source: source},
	}})
}

// startSources starts them once.
func (p *platform) startSources() {
	p.t.Helper()
	if p.sources != nil {
		return
	}
	p.sources = fleet.SourcesForTest(p.t)
	expect.Create(p.t, p.client, given.AuthoritySecret(catalogueNamespace, p.sources.CA))
}

// publish has the merged catalogue of an add-on, under its name.
func (p *platform) publish(kind v1.CatalogueType, addon v1.Addon) {
	p.t.Helper()
	expect.Create(p.t, p.client, given.Merged(catalogueNamespace, kind, addon))
}

// install has all Clusters get two add-ons: one by the core list, which gates, and one by a set.
func (p *platform) install() {
	p.t.Helper()
	p.offer(v1.CatalogueCore, "network", v1.SlotCNI)
	p.offer(v1.CatalogueCustom, "logs", "")
	expect.Create(p.t, p.client, given.CoreList(platformNamespace, "- {name: network, addonRef: {name: network}, targetNamespace: default}\n"))
	copies := standins.Copies{Client: p.client, Namespace: catalogueNamespace}
	copies.Put(p.t, "everywhere", v1.AddonSetSpec{
		ClusterSelector: &metav1.LabelSelector{},
		Addons:          []v1.AddonSetItem{{Name: "logs", AddonRef: v1.AddonReference{Name: "logs"}, TargetNamespace: "default"}},
	})
	copies.KeepOpen(p.t, "everywhere", 1)
}

// member is a Cluster.
type member struct {
	types.NamespacedName
	// over is the API server behind it; nil: it has no kubeconfig.
	over *server
	// token is whom its kubeconfig makes the manager.
	token string
}

func (p *platform) member(namespace, name string, over *server) member {
	return member{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}, over: over, token: namespace + "." + name}
}

// add makes Clusters that are up, several at a time.
func (p *platform) add(members ...member) {
	p.t.Helper()
	var group errgroup.Group
	group.SetLimit(16)
	for _, one := range members {
		group.Go(func() error { return p.make(one) })
	}
	expect.NoError(p.t, group.Wait())
}

// make makes a Cluster as Cluster API has one: its kubeconfig and control plane come first, its status last.
func (p *platform) make(one member) error {
	ctx := p.t.Context()
	if one.over != nil {
		one.over.know(one.token)
		content := one.over.gate.Kubeconfig(p.t, one.token)
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: one.Namespace, Name: one.Name + "-kubeconfig", Labels: map[string]string{"cluster.x-k8s.io/cluster-name": one.Name},
			},
			Type: "cluster.x-k8s.io/secret", Data: map[string][]byte{"value": content},
		}
		if err := p.client.Create(ctx, secret); err != nil {
			return err
		}
	}
	plane := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"version": kubernetes, "replicas": int64(3)}}}
	plane.SetGroupVersionKind(clusterapi.ControlPlaneKind)
	plane.SetNamespace(one.Namespace)
	plane.SetName(one.Name)
	if err := p.write(plane, map[string]any{"version": kubernetes, "versions": versions(), "replicas": int64(3)}); err != nil {
		return err
	}
	cluster := clusterapi.Cluster{
		Namespace: one.Namespace, Name: one.Name, Version: kubernetes, Deployments: []string{"workers"}, Pools: []string{"pool"},
		PodRanges: []string{"10.0.0.0/16"}, Labels: map[string]string{"environment": "production", "region": "north"},
		Variables: []any{map[string]any{"name": "flavour", "value": map[string]any{"cpus": int64(8), "memory": "32Gi", "zone": "north-1"}}},
	}.Object()
	spec, _ := cluster.Object["spec"].(map[string]any)
	spec["controlPlaneRef"] = map[string]any{"apiGroup": clusterapi.ControlPlaneGroup, "kind": clusterapi.ControlPlaneKind.Kind, "name": one.Name}
	spec["infrastructureRef"] = map[string]any{
		"apiGroup": clusterapi.InfrastructureGroup, "kind": clusterapi.InfraClusterKind.Kind, "name": one.Name,
	}
	spec["controlPlaneEndpoint"] = map[string]any{"host": one.Name + ".example.com", "port": int64(6443)}
	return p.write(cluster, statusAt(1))
}

func versions() []any { return []any{map[string]any{"version": kubernetes, "replicas": int64(3)}} }

// statusAt is what Cluster API's manager says, as it differs from time to time.
func statusAt(turn int64) map[string]any {
	var conditions []any
	for _, kind := range []string{
		"Available", "ControlPlaneInitialized", "ControlPlaneAvailable", "ControlPlaneMachinesReady", "ControlPlaneMachinesUpToDate",
		"InfrastructureReady", "RemoteConnectionProbe", "WorkersAvailable", "WorkerMachinesReady", "TopologyReconciled", "RollingOut", "Paused",
	} {
		conditions = append(conditions, map[string]any{
			"type": kind, "status": "True", "reason": kind, "message": fmt.Sprintf("* MachineDeployment workers: turn %d", turn),
			"lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": turn,
		})
	}
	return map[string]any{
		"phase": []string{"Provisioned", "Provisioning"}[turn%2], "observedGeneration": turn, "conditions": conditions,
		"initialization": map[string]any{"controlPlaneInitialized": true, "infrastructureProvisioned": true},
		"controlPlane":   map[string]any{"versions": versions(), "replicas": int64(3), "readyReplicas": turn % 4},
		"workers":        map[string]any{"replicas": int64(5), "readyReplicas": turn % 6},
	}
}

// write makes an object with a status.
func (p *platform) write(object *unstructured.Unstructured, status map[string]any) error {
	if err := p.client.Create(p.t.Context(), object); err != nil {
		return fmt.Errorf("creating %s %q: %w", object.GetKind(), object.GetName(), err)
	}
	object.Object["status"] = status
	if err := p.client.Status().Update(p.t.Context(), object); err != nil {
		return fmt.Errorf("writing the status of %s %q: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

// object is an empty one of a kind, of a Cluster's name.
func (m member) object(kind schema.GroupVersionKind) *unstructured.Unstructured {
	made := &unstructured.Unstructured{}
	made.SetGroupVersionKind(kind)
	made.SetNamespace(m.Namespace)
	made.SetName(m.Name)
	return made
}

// know notes the calls of a token, and gives it a user cluster of its own.
func (s *server) know(token string) {
	system := &corev1.Namespace{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: uuid.NewUUID()},
	}
	content, err := json.Marshal(system)
	if err != nil {
		panic(err)
	}
	s.gate.Watch(token, gate.Guard{
		Before: func(call gate.Call) bool {
			s.mutex.Lock()
			defer s.mutex.Unlock()
			call.Body = nil
			s.calls = append(s.calls, call)
			return true
		},
		Instead: func(call gate.Call) []byte {
			if call.Path != "/api/v1/namespaces/kube-system" {
				return nil
			}
			return content
		},
	})
}

// callsSince are those from one on.
func (s *server) callsSince(mark int) []gate.Call {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return append([]gate.Call(nil), s.calls[mark:]...)
}

// areReady says what is not yet Ready of so many installations in some namespaces.
func (p *platform) areReady(want int, namespaces ...string) error {
	count := 0
	for _, namespace := range namespaces {
		var list v1.AddonInstallationList
		if err := p.client.List(p.t.Context(), &list, client.InNamespace(namespace)); err != nil {
			return err
		}
		for _, one := range list.Items {
			if !meta.IsStatusConditionTrue(one.Status.Conditions, v1.ConditionReady) {
				return fmt.Errorf("%s/%s: %v", one.Namespace, one.Name, one.Status.Conditions)
			}
			count++
		}
	}
	if count != want {
		return fmt.Errorf("%d installations are ready, want %d", count, want)
	}
	return nil
}

// areHeld says which Cluster lacks the annotation that would hold its upgrade.
func (p *platform) areHeld(members ...member) error {
	for _, one := range members {
		found := one.object(clusterapi.ClusterKind)
		if err := p.client.Get(p.t.Context(), one.NamespacedName, found); err != nil {
			return err
		}
		if _, isOn := found.GetAnnotations()[clusterapi.BeforeUpgrade+"/trellis"]; !isOn {
			return fmt.Errorf("%s has %s", one, strings.Join(keysOf(found.GetAnnotations()), " "))
		}
	}
	return nil
}

func keysOf(all map[string]string) (keys []string) {
	for key := range all {
		keys = append(keys, key)
	}
	return keys
}
