package coreaddon_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
)

// writersAtOnce is the controller's default concurrency, and the bare client's.
const writersAtOnce = 8

// TestAnItemIsOneWriteForEachCluster fails when an installation is created and then corrected.
func TestAnItemIsOneWriteForEachCluster(t *testing.T) {
	w := newWorld(t)
	w.merged(v1.CatalogueCore, "rbac")
	w.merged(v1.CatalogueCustom, "prometheus")
	const size = 20
	clusters := w.clusters(size)
	w.start()
	w.everywhere(clusters, "rbac")
	before := w.writes.number.Load()
	w.listed(monitoringItem)
	w.everywhere(clusters, "monitoring")
	w.steady(func() error {
		if written := w.writes.number.Load() - before; written != size {
			return fmt.Errorf("%d writes for %d clusters", written, size)
		}
		return nil
	})
}

// BenchmarkAnItemReachesAllClusters: 500 clusters with 8 core add-ons each get a ninth, compared with a bare client
// that applies the same 500 objects elsewhere.
func BenchmarkAnItemReachesAllClusters(b *testing.B) {
	const size, each = 500, 8
	w := newWorld(b)
	list := ""
	for i := range each - 1 {
		name := fmt.Sprintf("addon-%d", i)
		w.merged(v1.CatalogueCustom, name)
		list += fmt.Sprintf("- {name: %[1]s, addonRef: {name: %[1]s}, targetNamespace: %[1]s}\n", name)
	}
	w.merged(v1.CatalogueCore, "rbac")
	w.listed(list)
	clusters, elsewhere := w.clusters(size), w.clusters(size)
	for _, of := range elsewhere { // the controller ignores these
		expect.Change(w.t, w.seed, of, func(c *kkpv1.Cluster) { c.Spec.Pause = true })
	}
	w.start()
	w.everywhere(clusters, "rbac")
	w.everywhere(clusters, fmt.Sprintf("addon-%d", each-2))
	for range b.N {
		var ratios []float64
		for round := range 3 {
			name := fmt.Sprintf("late-%d", round)
			w.merged(v1.CatalogueCustom, name)
			list += fmt.Sprintf("- {name: %[1]s, addonRef: {name: %[1]s}, targetNamespace: %[1]s}\n", name)
			written := w.writes.number.Load()
			arrived := w.arrivals(name, size)
			begin := time.Now()
			w.listed(list)
			arrived()
			ours := time.Since(begin)
			model := w.exists(clusters[0], name)
			bare := w.applyBare(model, elsewhere)
			ratios = append(ratios, ours.Seconds()/bare.Seconds())
			b.Logf("round %d: %d clusters in %s with %d writes; a bare client in %s", round, size, ours,
				w.writes.number.Load()-written, bare)
			b.ReportMetric(float64(w.writes.number.Load()-written)/size, "writes/cluster")
		}
		slices.Sort(ratios)
		b.ReportMetric(ratios[len(ratios)/2], "times-bare-client")
	}
}

func (w *world) clusters(number int) []*kkpv1.Cluster {
	w.t.Helper()
	var clusters []*kkpv1.Cluster
	for i := range number {
		clusters = append(clusters, w.cluster(fmt.Sprintf("many-%d-%d", len(w.made), i)))
	}
	w.made = append(w.made, clusters...)
	return clusters
}

// everywhere waits until every cluster has an installation.
func (w *world) everywhere(clusters []*kkpv1.Cluster, name string) {
	w.t.Helper()
	wanted := map[string]bool{}
	for _, of := range clusters {
		wanted[of.Status.NamespaceName] = true
	}
	expect.Eventually(w.t, 5*expect.Patience, func() error {
		found := metadataList()
		if err := w.seed.List(w.t.Context(), found, client.MatchingLabels{v1.LabelManagedBy: v1.ManagedByCoreAddons}); err != nil {
			return err
		}
		there := 0
		for i := range found.Items {
			if found.Items[i].Name == name && wanted[found.Items[i].Namespace] {
				there++
			}
		}
		if there != len(clusters) {
			return fmt.Errorf("%d of %d clusters have %s", there, len(clusters), name)
		}
		return nil
	})
}

// arrivals opens a watch, and returns a function that waits until that many clusters have an installation.
func (w *world) arrivals(name string, number int) (wait func()) {
	w.t.Helper()
	watching, err := w.seed.Watch(w.t.Context(), metadataList(), client.MatchingLabels{v1.LabelManagedBy: v1.ManagedByCoreAddons},
		client.MatchingFields{"metadata.name": name})
	expect.NoError(w.t, err)
	return func() {
		defer watching.Stop()
		timeout := time.After(5 * expect.Patience)
		for left := number; left > 0; {
			select {
			case event := <-watching.ResultChan():
				if event.Type == watch.Added {
					left--
				}
			case <-timeout:
				w.t.Fatalf("%d clusters are left without %s", left, name)
			}
		}
	}
}

// applyBare applies copies of an installation in other namespaces, as fast as the same number of writers can.
func (w *world) applyBare(model *v1.AddonInstallation, clusters []*kkpv1.Cluster) time.Duration {
	w.t.Helper()
	spec, err := json.Marshal(model.Spec)
	expect.NoError(w.t, err)
	group, ctx := errgroup.WithContext(w.t.Context())
	group.SetLimit(writersAtOnce)
	begin := time.Now()
	for _, of := range clusters {
		group.Go(func() error {
			content := fmt.Appendf(nil, `{"apiVersion":%q,"kind":"AddonInstallation","metadata":{"name":%q,"namespace":%q,`+
				`"labels":{%q:"bare"},"annotations":{%q:"rule",%q:%q},"finalizers":[%q]},"spec":%s}`,
				v1.GroupVersion, model.Name, of.Status.NamespaceName, v1.LabelManagedBy, v1.AnnotationCoreOrigin,
				v1.AnnotationDigest, model.Annotations[v1.AnnotationDigest], v1.FinalizerCoreProtection, spec)
			return w.seed.Patch(ctx, installationOf(of, model.Name), client.RawPatch(types.ApplyPatchType, content),
				client.ForceOwnership, client.FieldOwner("bare"))
		})
	}
	expect.NoError(w.t, group.Wait())
	return time.Since(begin)
}
