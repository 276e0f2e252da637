package addoninstallation_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/controllers/addoninstallation"
	"github.com/trellis-addons/trellis/pkg/values/templatedata"
	"github.com/trellis-addons/trellis/test/clusterapi"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/given"
)

// named is a platform that only gives templates the names of Clusters of Cluster API.
type named struct{ addoninstallation.Platform }

func (p named) TemplateData(ctx context.Context, of target.Description, variables map[string]any) (templatedata.Data, error) {
	if of.IsKKP() {
		return p.Platform.TemplateData(ctx, of, variables)
	}
	data := templatedata.Data{Variables: variables}
	data.Cluster.Name, data.Cluster.Namespace = of.Name, of.Namespace
	return data, nil
}

// team is a namespace with Clusters of Cluster API.
type team struct {
	*world
	namespace string
	// owner is the API version of Clusters.
	owner string
}

func newTeam(t *testing.T) *team {
	t.Helper()
	w := newWorld(t)
	w.kinds = cluster.Kinds{Served: []schema.GroupKind{target.KindKKP, target.KindClusterAPI}}
	w.platform = func(before addoninstallation.Platform) addoninstallation.Platform { return named{before} }
	m := &team{world: w, namespace: w.unique("team"), owner: clusterapi.ClusterKind.GroupVersion().String()}
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: m.namespace}})
	w.neighbours = append(w.neighbours, m.namespace)
	return m
}

// add creates a ready Cluster, over one of the fleet.
func (m *team) add(name, over string) *unstructured.Unstructured {
	m.t.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: m.namespace, Name: name + "-kubeconfig", Labels: map[string]string{"cluster.x-k8s.io/cluster-name": name},
		},
		Data: map[string][]byte{"value": fleet.Shared().Cluster(over).Kubeconfig},
	}
	expect.Ensure(m.t, m.seed, secret)
	made := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"infrastructureRef": map[string]any{"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "PlayedCluster", "name": name},
	}}}
	made.SetGroupVersionKind(clusterapi.ClusterKind)
	made.SetNamespace(m.namespace)
	made.SetName(name)
	m.create(made)
	made.Object["status"] = map[string]any{
		"initialization": map[string]any{"controlPlaneInitialized": true},
		"controlPlane":   map[string]any{"versions": []any{map[string]any{"version": "v1.36.3", "replicas": int64(1)}}},
	}
	expect.UpdateStatus(m.t, m.seed, made)
	return made
}

// requestIn creates an installation in a Cluster, and leaves the namespace to the catalogue.
func (m *team) requestIn(of, name, addon string, dependsOn ...string) *kubermaticv1.AddonInstallation {
	m.t.Helper()
	object := given.Installation(m.namespace, name, addon, "")
	object.Spec.ClusterName, object.Spec.DependsOn = of, namesOf(dependsOn)
	m.create(object)
	return object
}

// publishInto offers an add-on whose catalogue names a namespace; "" is none.
func (m *team) publishInto(addon, namespace string, versions ...kubermaticv1.AddonVersion) {
	m.t.Helper()
	if len(versions) == 0 {
		versions = []kubermaticv1.AddonVersion{m.version(offered{version: "1.0.0"})}
	}
	m.publishAddon(kubermaticv1.CatalogueCustom, kubermaticv1.Addon{
		Name: kubermaticv1.AddonName(addon), TargetNamespace: namespace, CreateNamespace: namespace != "", Versions: versions,
	})
}

// expectOwner waits until a Cluster is the only owner of an object.
func (m *team) expectOwner(object client.Object, of *unstructured.Unstructured) {
	m.t.Helper()
	expect.Object(m.t, m.seed, object, func(object client.Object) error {
		owners := object.GetOwnerReferences()
		if len(owners) != 1 || owners[0].UID != of.GetUID() || owners[0].Name != of.GetName() || owners[0].APIVersion != m.owner {
			return fmt.Errorf("%s ends with %v", object.GetName(), owners)
		}
		return nil
	})
}

// records are the Secrets of release records, by the UID of the Cluster that owns them.
func (m *team) records() map[string][]string {
	m.t.Helper()
	var list corev1.SecretList
	expect.List(m.t, m.seed, &list, client.InNamespace(m.namespace), client.HasLabels{kubermaticv1.LabelInstallation})
	found := map[string][]string{}
	for _, item := range list.Items {
		for _, owner := range item.OwnerReferences {
			key := fmt.Sprintf("%s %s", owner.APIVersion, owner.UID)
			found[key] = append(found[key], item.Name+" "+item.ResourceVersion)
		}
	}
	return found
}
