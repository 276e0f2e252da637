package addoninstallation

import (
	"fmt"
	"testing"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/revision"
)

// What a user cluster adds to a record beyond its objects is laid to the cluster, and nothing is concluded from it. Red when it is
// told as a call on the seed that failed.
func TestGrowthIsLaidToTheCluster(t *testing.T) {
	grown := &revision.GrowthError{Secret: "addon-a-1", Installation: "web", Have: 5_500_000, Max: 70_000}
	outcome, ok := failed(fmt.Errorf("saving: %w", grown)).(loop.RetryAt)
	if !ok || outcome.Reason != kubermaticv1.ReasonClusterMisbehaves || !outcome.Unknown || outcome.Message != grown.Error() {
		t.Errorf("got %+v", outcome)
	}
}
