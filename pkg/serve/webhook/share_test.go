package webhook_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/fleet/mergedcatalogue"
	"github.com/trellis-addons/trellis/pkg/serve/webhook"
)

// crowded is a cache that has so many installations, with values of so many bytes; change says what each is like besides.
type crowded struct {
	client.Reader
	count, bytes int
	change       func(one *v1.AddonInstallation, at int)
}

func (c crowded) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	found, isThese := list.(*v1.AddonInstallationList)
	if !isThese {
		return c.Reader.List(ctx, list, options...)
	}
	for i := range c.count {
		one := installation("1.0.0", fmt.Sprintf(`{"a":%q}`, strings.Repeat("x", c.bytes)))
		one.Name = fmt.Sprintf("web-%d", i)
		if c.change != nil {
			c.change(one, i)
		}
		found.Items = append(found.Items, *one)
	}
	return nil
}

// F12: Red when one cluster may have installations, values or annotations without a bound, also while they are being deleted; when
// what is there can't be made smaller; and when a Core add-on is refused for it.
func TestInstallationsOfAClusterHaveABound(t *testing.T) {
	c := connect(t)
	large := fmt.Sprintf(`{"a":%q}`, strings.Repeat("x", 200<<10))
	core := func(i *v1.AddonInstallation) { i.Spec.CoreAddon = true }
	ofSet := func(i *v1.AddonInstallation) { i.Labels = map[string]string{v1.LabelSet: "monitoring"} }
	first := func(i *v1.AddonInstallation) { i.Name = "web-0" }
	noted := func(i *v1.AddonInstallation) { i.Annotations = map[string]string{"example.com/note": large} }
	deleted := func(i *v1.AddonInstallation) { i.DeletionTimestamp = &metav1.Time{Time: time.Now()} }
	named := func(i *v1.AddonInstallation) { i.Spec.ClusterName = "amber" }
	for _, test := range []struct {
		why           string
		count, bytes  int
		before, after *v1.AddonInstallation
		refused       string
	}{
		{why: "one more than 999", count: 999, after: installation("1.0.0", "")},
		{why: "one more than 1000", count: 1000, after: installation("1.0.0", ""), refused: "the cluster has 1000 AddonInstallations, and at most 1000 are allowed"},
		{why: "a Core add-on", count: 1000, after: with(installation("1.0.0", large), core)},
		{why: "one of a set", count: 1000, after: with(installation("1.0.0", large), ofSet)},
		{why: "an edit of one of them", count: 1001, before: with(installation("1.0.0", ""), first), after: with(installation("1.1.0", ""), first)},
		{why: "large values", count: 80, bytes: 200 << 10, after: installation("1.0.0", "")},
		{why: "more large values", count: 82, bytes: 200 << 10, after: installation("1.0.0", large), refused: "at most 16384 KiB are allowed"},
		{why: "values that grow", count: 82, bytes: 200 << 10, before: with(installation("1.0.0", ""), first),
			after: with(installation("1.0.0", large), first), refused: "at most 16384 KiB are allowed"},
		{why: "annotations that grow alone", count: 82, bytes: 200 << 10, before: with(installation("1.0.0", ""), first),
			after: with(installation("1.0.0", ""), first, noted), refused: "values, labels and annotations"},
		{why: "annotations that shrink", count: 82, bytes: 200 << 10, before: with(installation("1.0.0", ""), first, noted),
			after: with(installation("1.0.0", ""), first)},
		{why: "values that grow while it is deleted", count: 82, bytes: 200 << 10, before: with(installation("1.0.0", ""), first, deleted),
			after: with(installation("1.0.0", large), first, deleted), refused: "at most 16384 KiB are allowed"},
		{why: "one that was of no cluster", count: 1000, before: installation("1.0.0", ""), after: with(installation("1.0.0", ""), named),
			refused: "the cluster has 1000 AddonInstallations"},
		{why: "values that shrink", count: 100, bytes: 200 << 10, before: with(installation("1.0.0", large), first),
			after: with(installation("1.0.0", `{"a":"x"}`), first)},
	} {
		t.Run(test.why, func(t *testing.T) {
			handler := &webhook.Installations{
				Reader: crowded{Reader: c, count: test.count, bytes: test.bytes}, Marks: mergedcatalogue.New(logr.Discard()), Clusters: living("1.36.3"), CatalogueNamespace: merged,
			}
			answer := handler.Handle(t.Context(), question(t, orNil(test.before), orNil(test.after)))
			if test.refused != "" {
				expectRefused(t, answer, test.refused)
			} else if !answer.Allowed {
				t.Errorf("it is refused: %s", messageOf(answer))
			}
		})
	}
}

// known finds one Cluster by its name, and no other.
type known string

func (k known) Find(ctx context.Context, ref target.Ref) (target.Description, error) {
	if ref.Name != string(k) {
		return target.Description{}, errNoCluster
	}
	return neighbours{}.Find(ctx, ref)
}

// TestInstallationsWithoutAClusterAreOneShare turns red when each made-up clusterName has a share of its own, or when what counts there is
// held against the installations of a Cluster, or the other way round.
func TestInstallationsWithoutAClusterAreOneShare(t *testing.T) {
	c := connect(t)
	of := func(cluster string) *v1.AddonInstallation {
		return with(installation("1.0.0", ""), func(i *v1.AddonInstallation) { i.Spec.ClusterName = cluster })
	}
	madeUp := func(one *v1.AddonInstallation, at int) { one.Spec.ClusterName = fmt.Sprintf("made-up-%d", at) }
	found := func(one *v1.AddonInstallation, at int) {
		madeUp(one, at)
		one.Status.Cluster = &v1.ClusterIdentity{Name: one.Spec.ClusterName, UID: "1"}
	}
	gone := of("made-up-7")
	gone.Status.Cluster = &v1.ClusterIdentity{Name: "made-up-7", UID: "1"}
	for _, test := range []struct {
		why     string
		count   int
		change  func(*v1.AddonInstallation, int)
		before  *v1.AddonInstallation
		after   *v1.AddonInstallation
		refused bool
	}{
		{why: "the last that may be", count: 999, change: madeUp, after: of("made-up")},
		{why: "one more, by another name", count: 1000, change: madeUp, after: of("made-up"), refused: true},
		{why: "one more, without a name", count: 1000, change: madeUp, after: of(""), refused: true},
		{why: "one of a Cluster", count: 1000, change: madeUp, after: of("amber")},
		{why: "beside those of Clusters", count: 1000, change: found, after: of("made-up")},
		{why: "one whose Cluster was there", count: 1000, change: madeUp, before: gone, after: with(gone.DeepCopy(), func(i *v1.AddonInstallation) {
			i.Annotations = map[string]string{"a": "b"}
		})},
	} {
		t.Run(test.why, func(t *testing.T) {
			handler := &webhook.Installations{
				Reader: crowded{Reader: c, count: test.count, change: test.change}, Marks: mergedcatalogue.New(logr.Discard()), Clusters: known("amber"),
				CatalogueNamespace: merged,
			}
			answer := handler.Handle(t.Context(), question(t, orNil(test.before), orNil(test.after)))
			if test.refused {
				expectRefused(t, answer, "no Cluster is found", "at most 1000 are allowed")
			} else if !answer.Allowed {
				t.Errorf("it is refused: %s", messageOf(answer))
			}
		})
	}
}

// TestManyFieldManagersAreRefused turns red when a user may apply an installation under any number of names, each of which has all
// fields of it once more.
func TestManyFieldManagersAreRefused(t *testing.T) {
	c := connect(t)
	create(t, c, namespace("managers"))
	serveWebhooks(t, "managers")
	values := map[string]any{}
	for i := range 200 {
		values[fmt.Sprintf("key-%d", i)] = int64(i)
	}
	apply := func(manager string) error {
		object := &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"namespace": "managers", "name": "web"},
			"spec":     map[string]any{"addonRef": map[string]any{"name": "web"}, "targetNamespace": "web", "values": values},
		}}
		object.SetGroupVersionKind(v1.GroupVersion.WithKind("AddonInstallation"))
		return c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(manager))
	}
	for number := range 100 {
		err := apply(fmt.Sprintf("manager-%d", number))
		if err == nil {
			continue
		}
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "metadata.managedFields") || number < 5 {
			t.Errorf("manager %d: %v", number, err)
		}
		if err := apply("manager-0"); err != nil {
			t.Errorf("who has the fields already is refused: %v", err)
		}
		return
	}
	t.Error("100 managers are taken")
}
