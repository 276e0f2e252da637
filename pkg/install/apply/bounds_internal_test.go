package apply

import (
	"errors"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/test/cost"
)

// TestConflictsReadEachFieldSetOnce fails if all field sets are read again for each field in conflict.
func TestConflictsReadEachFieldSetOnce(t *testing.T) {
	managed := []metav1.ManagedFieldsEntry{cost.ManagedBy("m", "", cost.DisorderedFields(1<<18))}
	resolve := func(count int) func() {
		return func() {
			var fields []string
			for i := range count {
				fields = append(fields, fmt.Sprintf(".f%d", i))
			}
			w := &writer{RolloutOptions: RolloutOptions{Adopt: true}, owner: ownership.Owner{Installation: "x"}}
			live := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ManagedFields: managed}}
			if !w.resolveFields(&item{object: cost.ObjectWithValues(1)}, live, fields, &attempt{}) {
				t.Fatal("what adopts takes fields over")
			}
		}
	}
	cost.Share(t, 4, resolve(1), resolve(40))
}

// TestConflictsNameNoMoreFieldsThanWereSent fails if a conflict is accepted that is about more fields than were sent.
func TestConflictsNameNoMoreFieldsThanWereSent(t *testing.T) {
	it := &item{object: cost.ObjectWithValues(3)}
	fields := make([]string, 20)
	var misbehaved *calls.MisbehavesError
	if err := checkConflicts(it, fields); !errors.As(err, &misbehaved) {
		t.Errorf("20 conflicts about an object of 10 values: %v", err)
	}
	if err := checkConflicts(it, fields[:3]); err != nil {
		t.Errorf("3 conflicts: %v", err)
	}
}
