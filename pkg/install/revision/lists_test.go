package revision

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/listcache"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
)

// listing counts lists.
type listing struct {
	client.Reader
	lists int
}

// List implements client.Reader.
func (l *listing) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	l.lists++
	return l.Reader.List(ctx, list, options...)
}

// Red when a process that starts lists the records of each installation for itself, or does not see
// what it wrote after that list.
func TestOneListLoadsTheRecordsOfANamespace(t *testing.T) {
	c := seed(t, "together")
	names := []string{"a", "b", "c", "d"}
	for _, name := range names {
		record := sample(1, 0)
		record.Installation = name
		if err := NewRecords(c, c, testSeal).SaveApplied(t.Context(), "together", record); err != nil {
			t.Fatal(err)
		}
	}
	counted := &listing{Reader: c}
	records := NewRecords(c, counted, testSeal)
	begun := time.Now()
	records.revisions = listcache.New(func() time.Time { return begun })
	load := func(name string, revision int) {
		t.Helper()
		owner := ownership.Owner{ClusterUID: sample(1, 0).ClusterUID, Installation: name}
		record, err := records.LoadFirst(t.Context(), "together", owner)
		if err != nil || (record == nil) != (revision == 0) || record != nil && record.Revision != revision {
			t.Errorf("%s: got %v, %v; want revision %d", name, record, err, revision)
		}
	}
	for _, name := range names {
		load(name, 1)
	}
	load("none", 0)
	if counted.lists != 1 {
		t.Errorf("%d lists, want one", counted.lists)
	}
	next := sample(2, 0)
	next.Installation = "a"
	if err := records.SaveIntent(t.Context(), "together", next); err != nil {
		t.Fatal(err)
	}
	load("a", 2)
	if err := records.Forget(t.Context(), "together", next.Owner()); err != nil {
		t.Fatal(err)
	}
	load("a", 0)
	load("b", 1)
}

// Red when records of another installation count, or those of one Cluster count twice.
func TestRecordsNameTheClusters(t *testing.T) {
	c := seed(t, "clusters")
	records := NewRecords(c, c, testSeal)
	for _, of := range []struct {
		installation, cluster string
		uid                   types.UID
		revision              int
	}{{"web", "now", "1", 1}, {"web", "now", "1", 2}, {"web", "former", "2", 1}, {"shop", "other", "3", 1}} {
		record := sample(of.revision, 0)
		record.Installation, record.ClusterName, record.ClusterUID = of.installation, of.cluster, of.uid
		if err := records.SaveApplied(t.Context(), "clusters", record); err != nil {
			t.Fatal(err)
		}
	}
	found, err := records.Clusters(t.Context(), "clusters", "web")
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(found, func(a, b v1.ClusterIdentity) int { return strings.Compare(a.Name, b.Name) })
	want := []v1.ClusterIdentity{{Name: "former", UID: "2"}, {Name: "now", UID: "1"}}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if found, err := records.Clusters(t.Context(), "clusters", "none"); err != nil || len(found) > 0 {
		t.Errorf("got %v, %v of an installation without records", found, err)
	}
}
