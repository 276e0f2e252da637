package revision

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/test/expect"
)

// of is a revision of a user's installation in a Cluster.
func of(installation string, cluster types.UID, revision, size int) *Record {
	record := sample(revision, size)
	record.Core, record.Installation, record.ClusterUID = false, installation, cluster
	return record
}

func metaOf(secret *corev1.Secret) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: secret.ObjectMeta}
}

// F5: Red when the records of one Cluster grow without a bound (no makeSpace), when a refused one leaves anything behind, when its own
// older revisions don't make room, or when another Cluster, a Core add-on or small records are refused with it.
func TestRecordsOfAClusterHaveABudget(t *testing.T) {
	c := seed(t, "budget")
	records := NewRecords(c, c, testSeal)
	records.budget = 5 << 20
	save := func(record *Record) error { return records.SaveIntent(t.Context(), "budget", record) }
	count := func() int {
		var list corev1.SecretList
		expect.List(t, c, &list, client.InNamespace("budget"))
		return len(list.Items)
	}
	const large = 600 << 10 // three quarters of it packed
	for revision := 1; revision <= 12; revision++ {
		record := of("one", "a", revision, large)
		record.LastGood = 1
		if err := save(record); err != nil {
			t.Fatalf("revision %d: %v", revision, err)
		}
	}
	first, err := records.LoadRevision(t.Context(), "budget", of("one", "a", 1, 0).Owner(), 1)
	if err != nil || first == nil {
		t.Errorf("the revision that it may go back to is gone: %v", err)
	}
	before := count()
	var full *BudgetError
	for i := range 9 {
		if err = save(of(fmt.Sprintf("other-%d", i), "a", 1, large)); err != nil {
			break
		}
		before = count()
	}
	if !errors.As(err, &full) {
		t.Fatalf("nine more large installations are taken: %v", err)
	}
	if after := count(); after != before {
		t.Errorf("what is refused left %d Secrets behind", after-before)
	}
	core := of("cni", "a", 1, large)
	core.Core = true
	for _, taken := range []*Record{of("small", "a", 1, 0), of("one", "b", 1, large), core} {
		if err := save(taken); err != nil {
			t.Errorf("%s of Cluster %s: %v", taken.Installation, taken.ClusterUID, err)
		}
	}
	if err := save(of("late", "a", 1, large)); !errors.As(err, &full) {
		t.Errorf("it is taken now: %v", err)
	}
	if err := records.Forget(t.Context(), "budget", of("one", "a", 1, 0).Owner()); err != nil {
		t.Fatal(err)
	}
	if err := save(of("late", "a", 1, large)); err != nil {
		t.Errorf("there is room again: %v", err)
	}
}

// TestRecordsThatAreWrittenTogetherKeepTheBudget turns red when records of one Cluster are counted while others of it are being written.
func TestRecordsThatAreWrittenTogetherKeepTheBudget(t *testing.T) {
	c := seed(t, "budget-together")
	records := NewRecords(c, c, testSeal)
	const together, large = 8, 600 << 10 // three quarters of it packed
	records.budget = 800 << 10
	results := make([]error, together)
	var group sync.WaitGroup
	for i := range together {
		record := of(fmt.Sprintf("one-%d", i), "a", 1, large)
		group.Go(func() { results[i] = records.SaveIntent(t.Context(), "budget-together", record) })
	}
	group.Wait()
	taken := 0
	for _, err := range results {
		var full *BudgetError
		if err == nil {
			taken++
		} else if !errors.As(err, &full) {
			t.Error(err)
		}
	}
	if taken != 1 {
		t.Errorf("%d of %d records were taken, and the budget is for one", taken, together)
	}
	soon, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	end, err := records.turns.Take(soon, "a")
	if err != nil {
		t.Fatalf("a turn has not ended: %v", err)
	}
	end()
}

// TestNoReconciliationWaitsForRecordsOfOthersBeyondItsTime turns red when a pass goes on waiting after its context ended.
func TestNoReconciliationWaitsForRecordsOfOthersBeyondItsTime(t *testing.T) {
	c := seed(t, "budget-turns")
	records, mine, others := NewRecords(c, c, testSeal), of("one", "a", 1, 0), of("one", "b", 1, 0)
	mine.State, others.State = StateIntent, StateIntent
	end, err := records.turns.Take(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = records.reserveSpace(ctx, "budget-turns", mine, smallRecord+1)
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "other records of the cluster") {
		t.Errorf("it waited for a turn, and says %v", err)
	}
	end, err = records.reserveSpace(t.Context(), "budget-turns", others, smallRecord+1)
	if err != nil {
		t.Fatalf("another Cluster's: %v", err)
	}
	end()
}

// A user who may write Secrets may take the label off or change it. Red when a part counts less then.
func TestPartsWithoutASizeAreFull(t *testing.T) {
	record := of("one", "a", 1, 0)
	part := partSecret("x", record, 1, make([]byte, partSize))
	labelled := bytesOf(metaOf(part), record.ClusterUID)
	delete(part.Labels, LabelBytes)
	if bare := bytesOf(metaOf(part), record.ClusterUID); bare != partSize || labelled != partSize {
		t.Errorf("%d and %d bytes, want %d", labelled, bare, partSize)
	}
	part.Labels[LabelBytes] = "-5"
	if forged := bytesOf(metaOf(part), record.ClusterUID); forged != partSize {
		t.Errorf("a forged label makes it %d bytes", forged)
	}
	if others := bytesOf(metaOf(part), "another"); others != 0 {
		t.Errorf("another Cluster's part counts %d bytes", others)
	}
}
