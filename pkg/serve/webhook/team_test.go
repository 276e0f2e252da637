package webhook_test

import (
	"context"
	"errors"
	"testing"

	"github.com/go-logr/logr"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/fleet/mergedcatalogue"
	"github.com/trellis-addons/trellis/pkg/serve/webhook"
)

// team are the Clusters of a namespace, by name.
type team map[string]target.Description

var errNobodys = errors.New("no Cluster of that name")

func (t team) Find(_ context.Context, ref target.Ref) (target.Description, error) {
	found, isThere := t[ref.Name]
	if !isThere {
		return target.Description{}, errNobodys
	}
	found.Ref = target.Ref{Kind: target.KindClusterAPI, Namespace: ref.Namespace, Name: ref.Name}
	return found, nil
}

// Red when a version is judged by a neighbour's Kubernetes, or when a core add-on is protected by a neighbour, or free by one: whose an
// installation is says its spec.clusterName, and not its namespace.
func TestAnInstallationIsOfTheClusterThatItNames(t *testing.T) {
	c := connect(t)
	const catalogues = "merged-team"
	offered := web()
	offered.Namespace = catalogues
	create(t, c, namespace(catalogues), namespace("team-web"), offered)
	handler := &webhook.Installations{
		Reader: c, Marks: mergedcatalogue.New(logr.Discard()), CatalogueNamespace: catalogues,
		Clusters: team{"one": {KubernetesVersion: "1.36.3", Deleted: true}, "two": {KubernetesVersion: "1.40.1"}},
	}
	of := func(cluster string) *v1.AddonInstallation {
		return with(installation("2.0.0", `{"domain":"a"}`), func(object *v1.AddonInstallation) {
			object.Namespace, object.Spec.ClusterName = "team-web", cluster
		})
	}
	for cluster, warnings := range map[string][]string{"one": {"1.36.3"}, "two": nil, "three": {errNobodys.Error()}, "": {errNobodys.Error()}} {
		expectAdmitted(t, handler.Handle(t.Context(), question(t, nil, of(cluster))), warnings...)
	}
	core := func(cluster string) *v1.AddonInstallation {
		return with(of(cluster), func(object *v1.AddonInstallation) {
			object.Spec.CoreAddon, object.Finalizers = true, []string{v1.FinalizerCoreProtection}
		})
	}
	expectAdmitted(t, handler.Handle(t.Context(), question(t, core("one"), nil))) // its cluster goes
	expectRefused(t, handler.Handle(t.Context(), question(t, core("two"), nil)), `cluster "two"`)
}
