package sandbox

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	capiv1 "github.com/trellis-addons/trellis/apis/clusterapi/v1"
	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/clusterapi"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
)

// Names on a sandbox with Cluster API.
const (
	// ClusterAPI is for Options.Clusters: one control plane, a management cluster of Cluster API, is the master and the only seed.
	ClusterAPI = "cluster-api"
	// Management is that control plane.
	Management = "management"
	// Team is the namespace of its Clusters.
	Team = "team"
)

// pendingHooks is an annotation of Cluster API's own. With it, it takes all off that came meanwhile.
const pendingHooks = "runtime.cluster.x-k8s.io/pending-hooks"

// TeamClusters lists the user clusters of Cluster API, in one namespace.
func TeamClusters() []UserCluster {
	return []UserCluster{
		{Name: "elm", Seed: Management, Release: binaries.Older, Ring: "0", shared: Team},
		{Name: "fir", Seed: Management, Release: binaries.Older, Ring: "1", shared: Team},
	}
}

// clusterAPIValues are those of the seed's chart: user clusters and their providers are on this machine.
func clusterAPIValues() map[string]any {
	return map[string]any{
		"kinds": []any{ClusterAPI}, "holdUpgrades": true, "allowCIDRs": []any{"127.0.0.0/8"},
		"providers": []any{map[string]any{"group": clusterapi.ControlPlaneGroup, "resource": "fleetcontrolplanes"}},
	}
}

// startClusterAPI runs Cluster API's own manager, and plays the providers: a control plane of one of the TeamClusters is the fleet's
// API server of that name.
func (s *Sandbox) startClusterAPI(ctx context.Context) error {
	management := s.Server(Management)
	manager, err := clusterapi.Start(ctx, s.Fleet, management, clusterapi.Options{})
	if err != nil {
		return err
	}
	s.progress.Printf("Cluster API runs after %.1f s", manager.Took.Seconds())
	servers := map[types.NamespacedName]*fleet.Cluster{}
	for _, cluster := range TeamClusters() {
		servers[types.NamespacedName{Namespace: Team, Name: cluster.Name}] = s.Server(cluster.Name)
	}
	s.provider, err = clusterapi.StartProvider(management, clusterapi.Provider{
		ServerOf: func(cluster types.NamespacedName) *fleet.Cluster { return servers[cluster] },
	})
	return err
}

// makeTeam makes the ClusterClass and the Clusters, and waits until each has its control plane.
func (s *Sandbox) makeTeam(ctx context.Context) error {
	if err := s.create(ctx, Management, namespace(Team)); err != nil {
		return err
	}
	if err := (clusterapi.Class{Namespace: Team}).Create(ctx, s.Client(Management)); err != nil {
		return err
	}
	for _, cluster := range TeamClusters() {
		if err := s.create(ctx, Management, TeamObject(cluster)); err != nil {
			return err
		}
	}
	for _, cluster := range TeamClusters() {
		found := TeamObject(cluster)
		err := s.Await(ctx, Management, found, func(client.Object) error {
			if isUp, _, _ := unstructured.NestedBool(found.Object, "status", "initialization", "controlPlaneInitialized"); !isUp {
				return fmt.Errorf("the control plane is not initialised, the provider says %w", s.provider.Troubles())
			}
			return nil
		})
		if err != nil {
			return err
		}
		s.progress.Printf("cluster %s of Cluster API is up in namespace %s, Kubernetes %s", cluster.Name, Team, cluster.Release)
	}
	return nil
}

// TeamObject is the Cluster of one of the TeamClusters.
func TeamObject(cluster UserCluster) *unstructured.Unstructured {
	return clusterapi.Cluster{
		Namespace: Team, Name: cluster.Name, Version: "v" + cluster.Release, Labels: map[string]string{LabelRing: cluster.Ring},
		Deployments: []string{"workers"}, Pools: []string{"pool"}, PodRanges: []string{"10.0.0.0/16"},
	}.Object()
}

// listCore says which core add-ons Clusters of Cluster API have, since KKP's rules are not for them.
func (s *Sandbox) listCore(ctx context.Context) error {
	if s.clusters != ClusterAPI {
		return nil
	}
	list := &corev1.ConfigMap{}
	if err := s.Manifest("cluster-api/core-list.yaml", list); err != nil {
		return err
	}
	return s.create(ctx, Management, list)
}

// awaitHolds waits until Cluster API has nothing left to do, and each Cluster has the annotation that an upgrade waits for.
func (s *Sandbox) awaitHolds(ctx context.Context) error {
	for _, cluster := range TeamClusters() {
		found := TeamObject(cluster)
		err := s.Await(ctx, Management, found, func(client.Object) error {
			annotations := found.GetAnnotations()
			if _, isHeld := annotations[capiv1.AnnotationBeforeUpgrade]; !isHeld || annotations[pendingHooks] != "" {
				return fmt.Errorf("its annotations are %v: %w", annotations, errNotYet)
			}
			return expect.Condition(found, "TopologyReconciled", "True", "")
		})
		if err != nil {
			return err
		}
		s.progress.Printf("an upgrade of %s would be held", cluster.Name)
	}
	return nil
}
