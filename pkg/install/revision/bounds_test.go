package revision

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/long"
)

// storedIn is how many bytes and Secrets a namespace has.
func storedIn(t *testing.T, c client.Client, namespace string) (bytes, count int) {
	t.Helper()
	var list corev1.SecretList
	expect.List(t, c, &list, client.InNamespace(namespace))
	for _, item := range list.Items {
		for _, data := range item.Data {
			bytes += len(data)
		}
	}
	return bytes, len(list.Items)
}

// An API server that answered with fields and UIDs of any size had the seed's etcd grow by 500 MB
// with seven edits, and by a record with each repair. Red when a record is saved whatever it has
// grown to.
func TestALyingClusterGrowsNothing(t *testing.T) {
	long.Heavy(t)
	c := seed(t, "lying-fields")
	records := NewRecords(c, c, testSeal)
	for revision := 1; revision <= 7; revision++ {
		intent := sample(revision, 0)
		expect.NoError(t, records.SaveIntent(t.Context(), "lying-fields", intent))
		for range 3 { // the end of the rollout, and repairs
			record, err := records.Load(t.Context(), "lying-fields", intent.Owner())
			expect.NoError(t, err)
			var grown *GrowthError
			if err := records.SaveApplied(t.Context(), "lying-fields", lied(record, 5_500_000)); !errors.As(err, &grown) {
				t.Fatalf("got %v, want a GrowthError", err)
			}
			if !strings.Contains(grown.Error(), `installation "prometheus"`) || grown.Have < 5_500_000 || grown.Max > 1<<20 {
				t.Errorf("it says %v", grown)
			}
			if err := records.SaveApplied(t.Context(), "lying-fields", sample(revision, 0)); revision > 1 && err == nil {
				t.Error("a record that was not loaded was written over an intent")
			}
		}
		record, err := records.Load(t.Context(), "lying-fields", intent.Owner())
		if err != nil || record.State != StateIntent {
			t.Fatalf("got %v, %v; want the intent as it was", record, err)
		}
	}
	if bytes, count := storedIn(t, c, "lying-fields"); bytes > 64<<10 || count > 7 {
		t.Errorf("%d bytes in %d Secrets", bytes, count)
	}
}

// What a user cluster honestly answers to what it was sent is saved, however odd the objects. Red
// when the bounds are too close.
func TestHonestAnswersAreSaved(t *testing.T) {
	digits, fields := make([]string, 2000), make([]string, 2000)
	for i := range digits {
		digits[i], fields[i] = fmt.Sprint(i%10), fmt.Sprintf(`"v:%d":{}`, i%10)
	}
	for why, test := range map[string]struct{ object, fields string }{
		"a list of digits, each a key": {
			`{"kind":"Odd","spec":{"a":[` + strings.Join(digits, ",") + `]}}`, `{"f:spec":{"f:a":{` + strings.Join(fields, ",") + `}}}`,
		},
		"nothing but labels": {
			`{"kind":"ServiceAccount","metadata":{"name":"a"}}`,
			`{"f:metadata":{"f:labels":{"f:addons.kubermatic.k8c.io/installation":{},"f:app.kubernetes.io/managed-by":{}},"f:ownerReferences":{}}}`,
		},
	} {
		record := sample(1, 0)
		record.Objects, record.Inventory, record.State = nil, nil, StateApplied
		for i := range 500 {
			record.Objects = append(record.Objects, json.RawMessage(test.object))
			record.Inventory = append(record.Inventory, ownership.Entry{
				Key: ownership.Key{Kind: "Odd", Name: fmt.Sprint(i)}, UID: "3f1b6a7c-0d4e-4b7a-9a52-2f6f6c1d9e10", Fields: json.RawMessage(test.fields),
			})
		}
		if err := record.bound(); err != nil {
			t.Errorf("%s: %v", why, err)
		}
	}
}

// Intents that are never carried out, each of other objects, or a prune that is never approved,
// made records grow without end. Red when what is left of earlier revisions is not counted.
func TestLeftoversAreCounted(t *testing.T) {
	record := sample(1, 0)
	for i := range maxEntries + 1 {
		entry := ownership.Entry{Key: ownership.Key{Kind: "ConfigMap", Name: fmt.Sprint(i)}, Fields: json.RawMessage(`{"f:data":{}}`)}
		if i%2 == 0 {
			record.Inventory = append(record.Inventory, entry)
		} else {
			record.Superseded = append(record.Superseded, entry)
		}
	}
	var large *TooLargeError
	if err := record.bound(); !errors.As(err, &large) || large.Max != maxEntries {
		t.Errorf("got %v, want a TooLargeError", err)
	}
	record.Inventory = record.Inventory[:10]
	if err := record.bound(); err != nil {
		t.Error(err)
	}
	for _, entry := range record.Superseded {
		if entry.Fields != nil {
			t.Fatal("a superseded object keeps its fields")
		}
	}
}

// A process is killed at every write of a record in many parts, again and again. Red when parts are
// left that no head refers to once a later one saved the record.
func TestNoPartsAreLeft(t *testing.T) {
	long.Heavy(t)
	c := seed(t, "parts")
	records := NewRecords(c, c, testSeal)
	record := sample(1, 2<<20)
	expect.NoError(t, records.SaveApplied(t.Context(), "parts", record))
	for writes := range 9 {
		loaded := load(t, records, "parts")
		loaded.Version = fmt.Sprint("v", writes)
		_ = NewRecords(killedAfter(c, writes), c, testSeal).SaveApplied(t.Context(), "parts", loaded) // dies on its way, or not
	}
	last := load(t, records, "parts")
	last.Objects = sample(1, 1<<20).Objects
	expect.NoError(t, records.SaveApplied(t.Context(), "parts", last))
	if _, count := storedIn(t, c, "parts"); count != 1+len(last.stored.parts) {
		t.Errorf("%d Secrets, want a head and %d parts: %v", count, len(last.stored.parts), names(t, c, "parts"))
	}
}
