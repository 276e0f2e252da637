package sandbox

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/charts"
	"github.com/trellis-addons/trellis/test/pod"
)

// distributor is the ServiceAccount of deploy/seed/rights.yaml, as whom the master's manager writes to the seeds.
const distributor = "trellis-distributor"

// tokenLife is how long the token in a Seed's kubeconfig lasts: nothing renews it, and a sandbox may stay for days.
const tokenLife = 30 * 24 * time.Hour

// chartOf is the chart that installs a control plane's manager.
func chartOf(cluster string) string {
	if cluster == Master {
		return "trellis-master"
	}
	return "trellis-seed"
}

// Users are who the managers are to a control plane's API server.
func Users(cluster string) []string {
	account := func(name string) string { return "system:serviceaccount:" + Namespace + ":" + name }
	if cluster == Master {
		return []string{account(chartOf(cluster))}
	}
	return []string{account(chartOf(cluster)), account(distributor)}
}

// ChartValues are the values of a control plane's chart: those of a lab without KKP, whose sources are on this machine.
func (s *Sandbox) ChartValues(cluster string) map[string]any {
	standalone, sources := map[string]any{"enabled": true}, map[string]any{"allowCIDRs": []any{"127.0.0.0/8"}}
	values := map[string]any{"standalone": standalone, "sources": sources}
	if cluster == Master {
		standalone["kkpVersion"] = strings.TrimPrefix(kkpVersion, "v")
	} else {
		values["driftInterval"], sources["interval"] = "10s", "10s"
	}
	if cluster != Master && s.clusters == ClusterAPI {
		values["clusterAPI"] = clusterAPIValues()
		delete(values, "standalone") // there is nothing that KKP would do
	}
	if cluster != Master {
		values["agents"], values["query"] = s.agentsValues(cluster), map[string]any{"url": s.QueryURL(cluster)}
	}
	if s.replicated {
		values["replicas"] = 2
	} else if !slices.Contains(s.elect, cluster) {
		values["extraArgs"] = []any{"--leader-elect=false"}
	}
	return values
}

// agentsValues have a seed give credentials to agents. Clusters of Cluster API share a namespace here, and the team whose that is.
func (s *Sandbox) agentsValues(seed string) map[string]any {
	values := map[string]any{"enabled": true, "hub": map[string]any{"server": s.Server(seed).Config.Host}}
	if s.clusters == ClusterAPI {
		values["sharedNamespaces"] = true
	}
	if len(s.approve) > 0 {
		values["approve"] = s.approve
	}
	return values
}

// awaitAuthority waits until the platform namespace has the ConfigMap of the cluster's authority, which its controllers put into every
// namespace: the seeds' managers have it mounted.
func (s *Sandbox) awaitAuthority(ctx context.Context, cluster string) error {
	authority := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: "kube-root-ca.crt"}}
	return s.Await(ctx, cluster, authority, func(client.Object) error { return nil })
}

// install applies what the chart of each manager brings, but for the Deployment, whose pods run on this machine: they serve their webhooks
// here, each at a port that stays over its restarts.
func (s *Sandbox) install(ctx context.Context) error {
	s.webhooks, s.deployed = map[string]string{}, map[string]corev1.PodSpec{}
	for _, cluster := range s.managed() {
		port, err := s.ports.Free("webhooks " + cluster)
		if err != nil {
			return fmt.Errorf("finding a port for the webhooks: %w", err)
		}
		s.webhooks[cluster] = fmt.Sprintf("127.0.0.1:%d", port)
	}
	group, ctx := errgroup.WithContext(ctx)
	var mutex sync.Mutex
	for _, cluster := range s.managed() {
		group.Go(func() error {
			deployed, err := s.installChart(ctx, cluster)
			mutex.Lock()
			defer mutex.Unlock()
			s.deployed[cluster] = deployed
			return err
		})
	}
	return group.Wait()
}

// installChart applies what the chart of a control plane's manager brings, and gives the pod of its Deployment.
func (s *Sandbox) installChart(ctx context.Context, cluster string) (deployed corev1.PodSpec, err error) {
	_, objects, err := charts.Render(chartOf(cluster), Namespace, s.ChartValues(cluster))
	if err != nil {
		return deployed, err
	}
	if err := charts.AskAt(objects, s.webhooks[cluster]); err != nil {
		return deployed, err
	}
	for _, object := range objects {
		if object.GetKind() != "Deployment" {
			err = s.create(ctx, cluster, object)
		} else {
			deployed, err = pod.SpecOf(object)
		}
		if err != nil {
			return deployed, err
		}
	}
	return deployed, nil
}

// allowDistributor gives the master's manager on a seed what deploy/seed/rights.yaml grants, and returns the kubeconfig for the Seed.
func (s *Sandbox) allowDistributor(ctx context.Context, seed string) ([]byte, error) {
	content, err := os.ReadFile(filepath.Join(s.root, "deploy", "seed", "rights.yaml"))
	if err != nil {
		return nil, err
	}
	objects, err := charts.Documents("deploy/seed/rights.yaml", string(content))
	if err != nil {
		return nil, err
	}
	for _, object := range objects {
		if err := client.IgnoreAlreadyExists(s.Client(seed).Create(ctx, object)); err != nil {
			return nil, fmt.Errorf("creating %s %q on %s: %w", object.GetKind(), object.GetName(), seed, err)
		}
	}
	if err := s.awaitRights(ctx, seed, distributor); err != nil {
		return nil, err
	}
	return s.kubeconfigOfDistributor(ctx, seed)
}

// awaitRights waits until the API server follows what was bound to a ServiceAccount, in the cluster and in the platform namespace: it
// hears of roles and bindings by watches of its own.
func (s *Sandbox) awaitRights(ctx context.Context, cluster, account string) error {
	everywhere := authorizationv1.ResourceAttributes{Group: kubermaticv1.GroupVersion.Group, Resource: "addoncatalogues", Verb: "list"}
	within := authorizationv1.ResourceAttributes{Group: "coordination.k8s.io", Resource: "leases", Namespace: Namespace, Verb: "create"}
	if account == distributor {
		everywhere.Resource = "addoninstallations"
		within.Group, within.Resource = "", "secrets"
	}
	for _, right := range []authorizationv1.ResourceAttributes{everywhere, within} {
		err := wait.PollUntilContextTimeout(ctx, pollEvery, patience, true, func(ctx context.Context) (bool, error) {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: "system:serviceaccount:" + Namespace + ":" + account, ResourceAttributes: &right,
			}}
			err := s.Client(cluster).Create(ctx, review)
			return review.Status.Allowed, err
		})
		if err != nil {
			return fmt.Errorf("waiting until %q may %s %s on %s: %w", account, right.Verb, right.Resource, cluster, err)
		}
	}
	return nil
}

// kubeconfigOfDistributor is one with a token of its ServiceAccount on a seed.
func (s *Sandbox) kubeconfigOfDistributor(ctx context.Context, seed string) ([]byte, error) {
	token := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(tokenLife.Seconds()))}}
	of := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: distributor}}
	if err := s.Client(seed).SubResource("token").Create(ctx, of, token); err != nil {
		return nil, fmt.Errorf("asking for a token of %q on %s: %w", distributor, seed, err)
	}
	return s.Server(seed).KubeconfigFor(token.Status.Token)
}

// admissionFlags have a manager serve its webhooks where they are asked.
func (s *Sandbox) admissionFlags(cluster string) []string {
	return charts.AdmissionFlags(chartOf(cluster), Namespace, s.webhooks[cluster])
}
