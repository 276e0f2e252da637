// Package cost compares the work that two pieces of code take, and makes the foreign input that takes most.
package cost

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// processor is the processor time that the process spends on a piece of work, the least of some tries: others want the machine too.
func processor(do func()) time.Duration {
	least := time.Duration(1 << 62)
	for range 5 {
		before := Spent()
		do()
		least = min(least, Spent()-before)
	}
	return least
}

// Spent is the processor time of this process so far: on a busy machine the clock tells of others too. What getrusage returns instead
// is some milliseconds old.
func Spent() time.Duration {
	var spent unix.Timespec
	if unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &spent) != nil {
		return 0
	}
	return time.Duration(spent.Nano())
}

// Share fails if the second piece of work costs more than so many times the first.
func Share(t *testing.T, most float64, first, second func()) {
	t.Helper()
	small, large := processor(first), processor(second)
	if share := float64(large) / float64(max(small, time.Microsecond)); share > most {
		t.Errorf("%s against %s: %.1f times the work, expected at most %.1f", large, small, share, most)
	}
}

// DisorderedFields is a field set of so many bytes whose fields are in no order.
func DisorderedFields(size int) []byte {
	var fields strings.Builder
	fields.WriteString(`{"f:x":{}`)
	numbers := rand.New(rand.NewSource(1))
	for fields.Len() < size {
		fmt.Fprintf(&fields, `,"f:%08x":{}`, numbers.Uint32())
	}
	fields.WriteString("}")
	return []byte(fields.String())
}

// ManagedBy is a manager's entry in managedFields, of one update, with such a field set.
func ManagedBy(manager, subresource string, fields []byte) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, Subresource: subresource, FieldsV1: metav1.NewFieldsV1(string(fields)),
	}
}

// ObjectWithValues is an object with so many values, which all begin alike.
func ObjectWithValues(count int) *unstructured.Unstructured {
	data := map[string]any{}
	for i := range count {
		data[fmt.Sprintf("k%d", i)] = fmt.Sprintf("aaaaaa%04x", i)
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x"}, "data": data,
	}}
}
