package sandbox

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/fleet"
)

// patience bounds every wait for the managers; a good start needs seconds.
const (
	patience  = 2 * time.Minute
	pollEvery = 100 * time.Millisecond
)

// layOut puts on the master and the seeds what an installed platform has: CRDs, namespaces, Seeds with their kubeconfigs,
// and the Secret with the sources' certificate authority.
func (s *Sandbox) layOut(ctx context.Context) error {
	standalone := filepath.Join(s.root, "deploy", "standalone", "crds")
	group, grouped := errgroup.WithContext(ctx)
	if s.clusters != ClusterAPI { // else the seed, which has more kinds, is the master
		group.Go(func() error {
			crds := filepath.Join(s.root, "charts", "trellis-master", "crds")
			if err := fleet.InstallCRDs(grouped, s.Server(Master).Config, crds, standalone); err != nil {
				return err
			}
			return s.create(grouped, Master, namespace(Namespace))
		})
	}
	kubeconfigs := make([][]byte, len(s.seeds()))
	for number, seed := range s.seeds() {
		group.Go(func() error {
			crds := filepath.Join(s.root, "charts", "trellis-seed", "crds")
			if err := fleet.InstallCRDs(grouped, s.Server(seed).Config, crds, standalone); err != nil {
				return err
			}
			err := s.create(grouped, seed, namespace(Namespace), namespace(CatalogueNamespace))
			if err != nil {
				return err
			}
			kubeconfigs[number], err = s.allowDistributor(grouped, seed)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return s.createOnMaster(ctx, kubeconfigs)
}

// createOnMaster creates what the master has, with the kubeconfigs of the seeds in their order.
func (s *Sandbox) createOnMaster(ctx context.Context, kubeconfigs [][]byte) error {
	authority := secret(CASecret, Namespace, "ca.crt", s.Sources.CA)
	authority.Labels = map[string]string{kubermaticv1.LabelUse: kubermaticv1.UseSource}
	authority.Annotations = map[string]string{kubermaticv1.AnnotationHosts: "127.0.0.1"}
	objects := []client.Object{authority}
	for number, seed := range s.seeds() {
		name := "kubeconfig-" + seed
		objects = append(objects,
			secret(name, Namespace, "kubeconfig", kubeconfigs[number]),
			&kkpv1.Seed{
				ObjectMeta: metav1.ObjectMeta{Name: seed, Namespace: Namespace},
				Spec:       kkpv1.SeedSpec{Kubeconfig: kkpv1.ObjectReference{Name: name, Namespace: Namespace}},
			})
	}
	return s.create(ctx, Master, objects...)
}

func (s *Sandbox) create(ctx context.Context, where string, objects ...client.Object) error {
	for _, object := range objects {
		if err := s.Client(where).Create(ctx, object); err != nil {
			return fmt.Errorf("creating %T %q on %s: %w", object, object.GetName(), where, err)
		}
	}
	return nil
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func secret(name, namespace, key string, content []byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Data: map[string][]byte{key: content},
	}
}

// connectClusters makes the Clusters, gives each namespace its kubeconfig as soon as it is there, and waits until every
// Cluster is up.
func (s *Sandbox) connectClusters(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, cluster := range s.UserClusters() {
		group.Go(func() error {
			if err := s.connect(ctx, cluster); err != nil {
				return fmt.Errorf("cluster %q: %w", cluster.Name, err)
			}
			s.progress.Printf("cluster %s is up on %s, Kubernetes %s", cluster.Name, cluster.Seed, cluster.Release)
			return nil
		})
	}
	return group.Wait()
}

func (s *Sandbox) connect(ctx context.Context, cluster UserCluster) error {
	if err := s.create(ctx, cluster.Seed, ClusterObject(cluster)); err != nil {
		return err
	}
	err := s.Await(ctx, cluster.Seed, namespace(cluster.Namespace()), func(client.Object) error { return nil })
	if err != nil {
		return err
	}
	kubeconfig := secret("internal-admin-kubeconfig", cluster.Namespace(), "kubeconfig", s.Server(cluster.Name).Kubeconfig)
	if err := s.create(ctx, cluster.Seed, kubeconfig); err != nil {
		return err
	}
	found := &kkpv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: cluster.Name}}
	return s.Await(ctx, cluster.Seed, found, func(client.Object) error {
		if found.Status.ExtendedHealth.APIServer != kkpv1.HealthUp || found.Status.Versions.ControlPlane == "" {
			return fmt.Errorf("status.extendedHealth.apiserver is %q, status.versions.controlPlane is %q: %w",
				found.Status.ExtendedHealth.APIServer, found.Status.Versions.ControlPlane, errNotYet)
		}
		return nil
	})
}

// ClusterObject is the Cluster of a user cluster.
func ClusterObject(cluster UserCluster) *kkpv1.Cluster {
	return &kkpv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: cluster.Name, Labels: map[string]string{LabelRing: cluster.Ring}},
		Spec: kkpv1.ClusterSpec{
			HumanReadableName: cluster.Name, Version: cluster.Release,
			Cloud:     kkpv1.CloudSpec{Datacenter: "sandbox", ProviderName: "bringyourown"},
			CNIPlugin: &kkpv1.CNIPlugin{Type: "none"},
			ClusterNetwork: kkpv1.ClusterNetwork{
				Services: kkpv1.NetworkRanges{CIDRBlocks: []string{"10.96.0.0/16"}},
				Pods:     kkpv1.NetworkRanges{CIDRBlocks: []string{"10.0.0.0/16"}}, DNSDomain: "cluster.local", ProxyMode: "iptables",
				KonnectivityEnabled: new(true),
			},
		},
	}
}

// Await reads an object until holds returns nil; a failure says what was seen last and where to look.
func (s *Sandbox) Await(ctx context.Context, where string, object client.Object, holds func(client.Object) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, pollEvery, patience, true, func(ctx context.Context) (bool, error) {
		if last = s.Client(where).Get(ctx, client.ObjectKeyFromObject(object), object); last == nil {
			last = holds(object)
		}
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%T %q on %s: %w; the managers' logs are in %s", object, object.GetName(), where,
			last, s.path("logs"))
	}
	return nil
}
