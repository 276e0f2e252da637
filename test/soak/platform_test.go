package soak

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/given"
	"github.com/trellis-addons/trellis/test/hostile"
	"github.com/trellis-addons/trellis/test/sandbox"
)

// patience is for a platform that comes back from everything at once: what waits is asked to try again.
const patience = 4 * time.Minute

// platform is a sandbox whose user clusters are reached through servers of the kit.
type platform struct {
	*sandbox.Sandbox
	servers map[string]*hostile.Server
}

// start starts a platform under the charts' memory limits. Every user cluster has two installations beside its core add-ons.
func start(t testing.TB) *platform {
	t.Helper()
	box, err := sandbox.Start(t.Context(), sandbox.Options{
		Folder: t.TempDir() + "/sandbox", Progress: fleet.NewProgress(t.Output()), Limited: true,
	})
	expect.NoError(t, err)
	t.Cleanup(box.Stop)
	p := &platform{Sandbox: box, servers: map[string]*hostile.Server{}}
	t.Cleanup(func() {
		if t.Failed() {
			p.report(t)
		}
		logs := t.ArtifactDir() + "/logs"
		t.Logf("logs: %s, %v", logs, os.CopyFS(logs, os.DirFS(p.Folder+"/logs")))
	})
	for _, cluster := range sandbox.UserClusters() {
		p.servers[cluster.Name] = hostile.New(t, box.Fleet.Cluster(cluster.Name))
		p.must(t, p.connect(t.Context(), cluster, p.servers[cluster.Name]))
		for _, installation := range intent(cluster) {
			p.must(t, box.Client(cluster.Seed).Create(t.Context(), installation))
		}
	}
	for _, cluster := range sandbox.UserClusters() {
		p.awaitIntent(t, cluster)
	}
	return p
}

func (p *platform) must(t testing.TB, err error) {
	t.Helper()
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

// intent is what a user cluster has at the beginning and at the end.
func intent(cluster sandbox.UserCluster) []*kubermaticv1.AddonInstallation {
	made := func(name, values string) *kubermaticv1.AddonInstallation {
		return given.Installation(cluster.Namespace(), name, name, name, given.Values(values), func(made *kubermaticv1.AddonInstallation) {
			made.Spec.CreateNamespace = name == "web"
		})
	}
	return []*kubermaticv1.AddonInstallation{made("greeter", `{"message":"good day"}`), made("web", `{"replicas":2}`)}
}

// connect writes the kubeconfig of a cluster, as the platform or its tenant does.
func (p *platform) connect(ctx context.Context, cluster sandbox.UserCluster, server *hostile.Server) error {
	return p.write(ctx, cluster, server.Kubeconfig())
}

// write writes the kubeconfig Secret of a cluster.
func (p *platform) write(ctx context.Context, cluster sandbox.UserCluster, kubeconfig []byte) error {
	seed := p.Client(cluster.Seed)
	secret := given.Kubeconfig(cluster.Namespace(), kubeconfig)
	err := seed.Create(ctx, secret)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"data":{"kubeconfig":%q}}`, encoded(kubeconfig)))
	return seed.Patch(ctx, secret, patch)
}

// awaitIntent waits until a cluster's installations and core add-ons are Ready, and there is no other.
func (p *platform) awaitIntent(t testing.TB, cluster sandbox.UserCluster) {
	t.Helper()
	expect.Eventually(t, patience, func() error {
		var list kubermaticv1.AddonInstallationList
		if err := p.Client(cluster.Seed).List(t.Context(), &list, client.InNamespace(cluster.Namespace())); err != nil {
			return err
		}
		var names []string
		for i := range list.Items {
			item := &list.Items[i]
			names = append(names, item.Name)
			if err := expect.Condition(item, kubermaticv1.ConditionReady, "True", kubermaticv1.ReasonReady); err != nil {
				return fmt.Errorf("%s in cluster %s: %w", item.Name, cluster.Name, err)
			}
		}
		slices.Sort(names)
		if want := []string{"default-storage-class", "greeter", "kube-proxy", "rbac", "web"}; !slices.Equal(names, want) {
			return fmt.Errorf("cluster %s has installations %q, want %q", cluster.Name, names, want)
		}
		return nil
	})
}

// restore brings the whole intent back: honest servers, each before its own cluster, and what is asked for.
func (p *platform) restore(t testing.TB) {
	t.Helper()
	for _, cluster := range sandbox.UserClusters() {
		p.servers[cluster.Name].Set(hostile.Truth)
		p.must(t, p.remake(t.Context(), cluster))
		p.must(t, p.Client(cluster.Seed).DeleteAllOf(t.Context(), &corev1.Secret{},
			client.InNamespace(cluster.Namespace()), client.HasLabels{forgedLabel}))
		p.must(t, p.sweep(t.Context(), cluster))
		for _, installation := range intent(cluster) {
			p.must(t, p.ask(t.Context(), cluster, installation))
		}
	}
}

// sweep removes what installation "forged" left in a user cluster, as an admin does: where its Cluster was deleted while it was
// being removed, its objects stay, and they are of nobody who will come back.
func (p *platform) sweep(ctx context.Context, cluster sandbox.UserCluster) error {
	seed, user := p.Client(cluster.Seed), p.Client(cluster.Name)
	forged := intent(cluster)[0]
	forged.Name = forgedName
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		return apierrors.IsNotFound(seed.Get(ctx, client.ObjectKeyFromObject(forged), forged)), ctx.Err()
	})
	if err != nil {
		return fmt.Errorf("waiting for the removal of installation %q in cluster %q: %w", forgedName, cluster.Name, err)
	}
	identity := &corev1.ConfigMap{}
	if err := seed.Get(ctx, identityKey(cluster), identity); err != nil {
		return client.IgnoreNotFound(err)
	}
	owner := ownership.Owner{ClusterUID: types.UID(identity.Data["originUID"]), Installation: forgedName}
	for _, kind := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		err := user.List(ctx, list, client.MatchingLabels{kubermaticv1.LabelInstallation: owner.ID()})
		if err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
			return err
		}
		for i := range list.Items {
			if err := user.Delete(ctx, &list.Items[i]); client.IgnoreNotFound(err) != nil {
				return err
			}
		}
	}
	return nil
}

// ask has an installation be as given, whatever it is now; one that is being removed goes first.
func (p *platform) ask(ctx context.Context, cluster sandbox.UserCluster, installation *kubermaticv1.AddonInstallation) error {
	seed := p.Client(cluster.Seed)
	return wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		found := &kubermaticv1.AddonInstallation{}
		err := seed.Get(ctx, client.ObjectKeyFromObject(installation), found)
		switch {
		case apierrors.IsNotFound(err):
			return seed.Create(ctx, installation.DeepCopy()) == nil, nil
		case err != nil || found.DeletionTimestamp != nil:
			return false, ctx.Err()
		}
		found.Spec = *installation.Spec.DeepCopy()
		// What waited for its next try is looked at now, as its owner would have it.
		found.Annotations = map[string]string{kubermaticv1.AnnotationReconcileAt: time.Now().Format(time.RFC3339Nano)}
		return seed.Update(ctx, found) == nil, nil
	})
}

// recognised says whether the seed has on record which user cluster a Cluster has. The first one that is found is believed, so whoever
// lies before that has his own cluster for another one, and nothing is wrong then which this test could find.
func (p *platform) recognised(ctx context.Context, cluster sandbox.UserCluster) bool {
	seed, found, identity := p.Client(cluster.Seed), &kkpv1.Cluster{}, &corev1.ConfigMap{}
	return seed.Get(ctx, client.ObjectKey{Name: cluster.Name}, found) == nil && seed.Get(ctx, identityKey(cluster), identity) == nil &&
		identity.Data["clusterUID"] == string(found.UID)
}

// identityKey is where the seed keeps which user cluster a Cluster has.
func identityKey(cluster sandbox.UserCluster) client.ObjectKey {
	return client.ObjectKey{Namespace: sandbox.Namespace, Name: "addon-cluster-" + cluster.Name}
}

// remake has a Cluster exist, with its kubeconfig, which leads to its own user cluster from the beginning.
func (p *platform) remake(ctx context.Context, cluster sandbox.UserCluster) error {
	seed := p.Client(cluster.Seed)
	if !p.recognised(ctx, cluster) {
		if p.servers[cluster.Name].Mode().Name == "other-identity" {
			p.servers[cluster.Name].Set(hostile.Truth)
		}
		_ = p.connect(ctx, cluster, p.servers[cluster.Name]) // its namespace may be gone with the Cluster
	}
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		found := &kkpv1.Cluster{}
		err := seed.Get(ctx, client.ObjectKey{Name: cluster.Name}, found)
		if apierrors.IsNotFound(err) {
			return false, client.IgnoreAlreadyExists(seed.Create(ctx, sandbox.ClusterObject(cluster)))
		}
		return err == nil && found.DeletionTimestamp == nil && found.Status.NamespaceName != "", nil
	})
	if err != nil {
		return fmt.Errorf("making Cluster %q anew: %w", cluster.Name, err)
	}
	return wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		return p.connect(ctx, cluster, p.servers[cluster.Name]) == nil, nil
	})
}

func filesBelow(folder string) int {
	count := 0
	entries, _ := os.ReadDir(folder)
	for _, entry := range entries {
		if entry.IsDir() {
			count += filesBelow(folder + "/" + entry.Name())
			continue
		}
		count++
	}
	return count
}
