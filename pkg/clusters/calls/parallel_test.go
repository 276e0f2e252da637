package calls_test

import (
	"context"
	"testing"

	"github.com/trellis-addons/trellis/pkg/clusters/calls"
)

// Red when a panic over one object of a user cluster ends the manager, and so stops all clusters: the pass that it happened in recovers
// from its own panics only.
func TestAPanicOverOneObjectIsTheCallers(t *testing.T) {
	defer func() {
		if found := recover(); found != "spoilt" {
			t.Errorf("the caller recovers %v", found)
		}
	}()
	err := calls.Each(t.Context(), []int{1, 2, 3}, func(_ context.Context, item int) error {
		if item == 2 {
			panic("spoilt")
		}
		return nil
	})
	t.Errorf("Each answers %v", err)
}
