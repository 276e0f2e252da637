package fieldsets

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/trellis-addons/trellis/test/cost"
)

// Red when a field set is read into a sorted set field by field, in whatever order they come: sixteen times the size is
// then 256 times the work.
func TestFieldSetsInNoOrderCostWhatTheirSizeIs(t *testing.T) {
	small, large := cost.DisorderedFields(1<<16), cost.DisorderedFields(1<<20)
	cost.Share(t, 80, func() { Parse(small) }, func() { Parse(large) })
	searched := func(fields []byte) func() { return func() { Has(fields, ReplicasPath) } }
	cost.Share(t, 80, searched(small), searched(large))
	scaled := func(fields []byte) func() {
		return func() { ScalingOf([]metav1.ManagedFieldsEntry{cost.ManagedBy("m", "scale", fields)}, "m") }
	}
	cost.Share(t, 1, searched(cost.DisorderedFields(1<<18)), scaled(large)) // no autoscaler owns as much
	compared := func(live []byte) func() { return func() { Lost([]byte(`{"f:x":{}}`), live, false) } }
	cost.Share(t, 1, compared(cost.DisorderedFields(liveSurplus)), compared(large)) // nor do we
}

// Red, in the order of the cases, when a field set's size is not compared with what was sent, or
// when it is not read; and when a time is told of none.
func TestFieldsAreKeptUpToTheSizeOfWhatWasSent(t *testing.T) {
	const ours = "addon-installation/x"
	for _, test := range []struct {
		why, fields string
		sent        int
		ok          bool
	}{
		{"larger than what was sent can have", string(cost.DisorderedFields(10_000)), 300, false},
		{"no JSON", `{"f:x":`, 300, false},
		{"a set of digits, which has the most", `{"f:data":{` + strings.Repeat(`"v:1":{},`, 49) + `"v:1":{}}}`, 100, true},
		{"none", "", 300, true},
	} {
		managed := cost.ManagedBy(ours, "", []byte(test.fields))
		managed.Operation, managed.Time = metav1.ManagedFieldsOperationApply, &metav1.Time{Time: time.Unix(7, 0)}
		fields, at, ok := Believable([]metav1.ManagedFieldsEntry{managed}, ours, test.sent)
		if ok != test.ok || ok && string(fields) != test.fields || (at == 7) != (len(fields) > 0) {
			t.Errorf("%s: %v, %d bytes, written at %d", test.why, ok, len(fields), at)
		}
	}
}

// FuzzFieldSets: what the library reads as a field set, in whatever order, we read as the same; and
// a search finds what is in it.
func FuzzFieldSets(f *testing.F) {
	for _, seed := range []string{
		`{}`, `null`, `{"f:a":{},"f:b":{".":{},"f:c":{}}}`, `{"f:b":{},"f:a":{},"f:b":{"f:z":{},"f:y":{}}}`, `{"f:spec":{"f:replicas":{}}}`,
		`{"k:{\"name\":\"x\",\"port\":1}":{".":{}},"v:\"s\"":{},"i:3":{}}`, `{"x:new":{"f:a":{}},"f:a":null}`, `{"f:a":{".":{}},"f:a":{}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		ours, err := Read(raw)
		if err != nil {
			return
		}
		theirs := &fieldpath.Set{}
		if theirs.FromJSON(strings.NewReader(string(raw))) != nil || len(raw) == 0 {
			return
		}
		if !ours.Equals(theirs) {
			t.Fatalf("%q is %s, read as %s", raw, theirs, ours)
		}
		var texts []string
		for path := range ours.All() {
			texts = append(texts, path.String())
		}
		slices.Sort(texts)
		texts = slices.Compact(texts)
		found := search(raw, texts)
		slices.Sort(found)
		if found = slices.Compact(found); !slices.Equal(found, texts) {
			t.Fatalf("%q: found %q, has %q", raw, found, texts)
		}
	})
}
