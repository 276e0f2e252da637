package release

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/ownership"
)

// book is a namespace whose lists are counted.
type book struct {
	entries map[string][]int
	partial bool
	err     error
	lists   int
}

func (b *book) list() (map[string][]int, bool, error) {
	b.lists++
	return maps.Clone(b.entries), b.partial, b.err
}

// Red when each name is listed for itself, when a list is believed for ever, or when touch does nothing.
func TestOneListAnswersForAllNames(t *testing.T) {
	now := time.Now()
	r := roll{now: func() time.Time { return now }}
	b := &book{entries: map[string][]int{"a": {1}}}
	expect := func(why, name string, revisions int, sure bool, lists int) {
		t.Helper()
		got, gotSure, err := r.look(t.Context(), "one", name, b.list)
		if err != nil || len(got) != revisions || gotSure != sure || b.lists != lists {
			t.Errorf("%s: got %v, sure %t, after %d lists, %v; want %d, %t, %d", why, got, gotSure, b.lists, err, revisions, sure, lists)
		}
	}
	expect("the first look lists", "a", 1, true, 1)
	expect("a second name is not on it", "b", 0, true, 1)
	r.touch("one", "b")
	expect("what was written since is not answered for", "b", 0, false, 1)
	expect("others are", "a", 1, true, 1)
	b.entries["b"] = []int{2, 1}
	now = now.Add(rollStands)
	expect("an old list is made anew", "b", 2, true, 2)
	b.partial, now = true, now.Add(rollStands)
	expect("a list with a part of the names answers for none", "a", 1, false, 3)
	b.err, now = errors.New("gone"), now.Add(rollStands)
	if _, _, err := r.look(t.Context(), "one", "a", b.list); !errors.Is(err, b.err) {
		t.Errorf("got %v, want what the list says", err)
	}
	b.err, b.partial = nil, false
	expect("a failed list is not kept", "a", 1, true, 5)
	if _, _, err := r.look(t.Context(), "two", "a", b.list); err != nil || b.lists != 6 {
		t.Errorf("another namespace: %d lists, %v", b.lists, err)
	}
	now = now.Add(rollStands)
	expect("the first namespace again", "a", 1, true, 7)
	if len(r.pages) != 1 {
		t.Errorf("%d namespaces are kept, want the one that was asked for last", len(r.pages))
	}
}

// Red when a list is begun for each that waits, also where it takes longer than it is believed; when what is written while it is
// made counts as listed; or when a look outlives its context.
func TestManyWaitForOneList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := roll{now: time.Now}
		b, answer := &book{}, make(chan struct{})
		slow := func() (map[string][]int, bool, error) {
			<-answer
			<-time.After(2 * rollStands) // of the bubble, which costs none
			return b.list()
		}
		ends := make(chan bool, 6)
		for range 5 {
			go func() {
				_, sure, err := r.look(t.Context(), "one", "a", slow)
				ends <- sure && err == nil
			}()
		}
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, _, err := r.look(ctx, "one", "a", slow); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v of a look whose context ended", err)
		}
		r.touch("one", "b")
		close(answer)
		go func() {
			_, sure, err := r.look(t.Context(), "one", "b", slow)
			ends <- !sure && err == nil
		}()
		for range 6 {
			if !<-ends {
				t.Error("a look was not answered, or what was written meanwhile was")
			}
		}
		if b.lists != 1 {
			t.Errorf("%d lists, want one", b.lists)
		}
	})
}

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

// Red when a process that starts lists the records of each installation for itself, or does not see what it wrote after that list.
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
	records.revisions.now = func() time.Time { return begun }
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
func TestRecordsTellTheClusters(t *testing.T) {
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
