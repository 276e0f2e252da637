package survey

import (
	"testing"

	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
)

// TestFieldSetsOfListsAreKeptUpToALimit fails if whole field sets are kept without a limit, or if one that is kept by
// its sum is not distinguished from another.
func TestFieldSetsOfListsAreKeptUpToALimit(t *testing.T) {
	r := &round{}
	r.kept.free.Store(1 << 20)
	r.whole.free.Store(1000)
	fields := []byte(`{"f:data":{"f:color":{}}}`)
	summed, kept := 0, sizes{}
	for range 100 {
		seen, err := r.compact(observation{fields: fields}, 10, &kept)
		if err != nil {
			t.Fatal(err)
		}
		if lost := seen.lost(ownership.Entry{Fields: fields}); len(lost) > 0 {
			t.Errorf("nothing changed, and %v are lost", lost)
		}
		if lost := seen.lost(ownership.Entry{Fields: []byte(`{"f:data":{"f:shape":{}}}`)}); len(lost) != 1 {
			t.Errorf("a field changed, and %v are lost", lost)
		}
		if seen.sum != nil {
			summed++
		}
	}
	if summed != 60 || kept.fields != 1000 {
		t.Errorf("%d of 100 sets are kept by their sum, %d bytes whole", summed, kept.fields)
	}
	var err error
	for range 1 << 20 {
		if _, err = r.compact(observation{}, 10, &kept); err != nil {
			break
		}
	}
	if !calls.IsMisbehaviour(err) || kept.all > 1<<20 {
		t.Errorf("%d bytes are kept: %v", kept.all, err)
	}
}
