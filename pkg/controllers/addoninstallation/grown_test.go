package addoninstallation

import (
	"fmt"
	"testing"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/install/revision"
)

// Additions of a user cluster to a record beyond its objects are reported as the cluster's fault, and have no effect.
// It fails if they are reported as a failed call on the seed.
func TestGrowthIsLaidToTheCluster(t *testing.T) {
	grown := &revision.GrowthError{Secret: "addon-a-1", Installation: "web", Have: 5_500_000, Max: 70_000}
	outcome := failed(fmt.Errorf("saving: %w", grown))
	if !outcome.Is(loop.RetryAt) || outcome.Reason != kubermaticv1.ReasonClusterMisbehaves || !outcome.Unknown || outcome.Message != grown.Error() {
		t.Errorf("got %+v", outcome)
	}
}
