package webhook_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/serve/webhook"
	"github.com/trellis-addons/trellis/test/expect"
)

// Red when an edit of a running set that takes what it made from clusters is let in without a warning, when one that takes nothing is warned
// of, when clusters are counted wrong, or when a set that nothing carries out, or one of another cluster, is judged by the seed's clusters.
func TestSetsAreWarnedOfClustersThatLoseThem(t *testing.T) {
	const place, copies = "lost-sets", "lost-copies"
	c := connect(t)
	create(t, c, namespace(place), namespace(copies))
	for name, labels := range map[string]map[string]string{
		"lost-amber": {"tier": "prod"}, "lost-birch": {"tier": "prod", "ring": "1"}, "lost-cedar": {"tier": "dev"},
		"lost-other": {"tier": "prod", kkpv1.LabelWorkerName: "other"},
	} {
		one := &kkpv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
		create(t, c, one)
		one.Status.NamespaceName = "cluster-" + name
		expect.UpdateStatus(t, c, one)
	}
	selecting := func(key, value string) func(*v1.AddonSet) {
		return func(set *v1.AddonSet) {
			set.Spec.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
		}
	}
	running := changed(setOf(place, "tools", "web"), selecting("tier", "prod"))
	copied := changed(running, func(set *v1.AddonSet) {
		set.Namespace, set.Labels = copies, map[string]string{v1.LabelRole: v1.RoleCopy}
		set.Annotations = map[string]string{v1.AnnotationSeed: "north"}
	})
	create(t, c, copied)
	handler := &webhook.Sets{Namespace: place, Seed: &webhook.SeedClusters{
		Reader: c, Clusters: cluster.NewKKPFinder(c, c, c), CatalogueNamespace: copies,
	}}
	for _, test := range []struct {
		why    string
		before *v1.AddonSet
		change func(*v1.AddonSet)
		want   []string
	}{
		{"a slip in a value", running, selecting("tier", "prd"),
			[]string{"no longer selects any cluster: the set's installations are removed from 2 clusters (lost-amber, lost-birch), once annotation"}},
		{"a slip in a key", running, selecting("teir", "prod"), []string{"no longer selects any cluster"}},
		{"another case", running, selecting("tier", "Prod"), []string{"no longer selects any cluster"}},
		{"another seed", running, selecting(v1.FactSeed, "south"), []string{"no longer selects any cluster"}},
		{"an operator", running, func(set *v1.AddonSet) {
			set.Spec.ClusterSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "tier", Operator: metav1.LabelSelectorOpDoesNotExist},
			}}
		}, []string{"no longer selects any cluster"}},
		{"some of them", running, selecting("ring", "1"), []string{"no longer selects 1 cluster: the set's installations there are removed (lost-amber)"}},
		{"others", running, selecting("tier", "dev"), []string{"no longer selects 2 clusters"}},
		{"more of them", running, func(set *v1.AddonSet) { set.Spec.ClusterSelector = &metav1.LabelSelector{} }, nil},
		{"this seed", running, selecting(v1.FactSeed, "north"), nil},
		{"the name of an item", running, func(set *v1.AddonSet) { set.Spec.Addons[0].Name = "wbe" },
			[]string{`the set no longer has item "web": it is removed from 2 clusters, once annotation addons.kubermatic.k8c.io/removal-approved approves it`}},
		{"what stays as if it were made by hand", running, func(set *v1.AddonSet) {
			set.Spec.Removal = v1.RemovalRelease
			selecting("tier", "prd")(set)
		}, nil},
		{"a set without a copy", changed(running, func(set *v1.AddonSet) { set.Name = "other" }), selecting("tier", "prd"), nil},
		{"a set that selected nothing", changed(running, selecting("tier", "prd")), selecting("tier", "prd2"), nil},
	} {
		t.Run(test.why, func(t *testing.T) {
			expectAdmitted(t, handler.Handle(t.Context(), question(t, test.before, changed(test.before, test.change))), test.want...)
		})
	}
	expectAdmitted(t, (&webhook.Sets{Namespace: place}).Handle(t.Context(), question(t, running, changed(running, selecting("tier", "prd")))))
}

// Red when a set that is applied to a seed, where nobody reads it, is taken without a warning; and when a copy is warned of, or a set on a
// seed that is the master too, or that can't be read.
func TestASetOnASeedIsWarnedOf(t *testing.T) {
	c := connect(t)
	const both = "sets-both"
	create(t, c, namespace(both), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: both, Name: v1.ConfigMapUsage}})
	for _, test := range []struct {
		why, namespace string
		reader         client.Reader
		warned         []string
	}{
		{"a seed", "sets-seed", c, []string{`ignored: sets that users write are read in namespace "sets-seed" of the master only`}},
		{"a seed that is the master", both, c, nil},
		{"a seed that can't be read", "sets-seed", unread{c}, nil},
	} {
		handler := &webhook.Sets{Namespace: test.namespace, Seed: &webhook.SeedClusters{Uncached: test.reader}}
		set := &v1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: test.namespace, Name: "tools"}, Spec: v1.AddonSetSpec{
			ClusterSelector: &metav1.LabelSelector{},
			Addons:          []v1.AddonSetItem{{Name: "web", AddonRef: v1.AddonReference{Name: "web"}, TargetNamespace: "web"}},
		}}
		t.Run(test.why, func(t *testing.T) {
			expectAdmitted(t, handler.Handle(t.Context(), question(t, nil, set)), test.warned...)
			set.Labels = map[string]string{v1.LabelRole: v1.RoleCopy}
			expectAdmitted(t, handler.Handle(t.Context(), question(t, nil, set)))
		})
	}
}
