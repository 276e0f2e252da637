package standalone

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
)

// nameNamespace ends the reconciliation, so that the name is written before the namespace is created. A status with
// any other name was not written here and is refused: that namespace would be deleted with the Cluster.
func nameNamespace(_ context.Context, f *facts) *loop.Outcome {
	name := f.namespace()
	if len(validation.IsDNS1123Label(name)) > 0 {
		return stalled(fmt.Sprintf("%q can't be the name of a namespace", name))
	}
	switch f.cluster.Status.NamespaceName {
	case name:
		return nil
	case "":
		f.cluster.Status.NamespaceName = name
		f.cluster.Status.ExtendedHealth.APIServer = kkpv1.HealthDown
		return &loop.Outcome{Kind: loop.Checkpoint}
	}
	return stalled(fmt.Sprintf("the status names namespace %q, which is not %q", f.cluster.Status.NamespaceName, name))
}
