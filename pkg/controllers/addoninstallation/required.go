package addoninstallation

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/installer"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/revision"
)

// requiredRecheck is how often kinds that a version needs are looked for; what brings them may be on its way.
const requiredRecheck = 15 * time.Second

// required waits until the user cluster serves what the version needs. Nothing of the version is rendered or applied before.
func (r *Reconciler) required(_ context.Context, f *facts) loop.Outcome {
	if f.Decision.IsApplied() || f.Decision.Do == revision.GoBack {
		return nil
	}
	var missing []string
	for _, need := range f.choice.Version.Template.RequiredResourceTypes {
		kind := schema.GroupVersionKind{Group: need.Group, Version: need.Version, Kind: need.Kind}
		_, err := f.Connection.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
		switch {
		case err == nil:
		case meta.IsNoMatchError(err):
			missing = append(missing, kind.GroupVersion().String()+" "+kind.Kind)
		default:
			return outcomeOf(r.callFailed(f, installer.AboutApply, err))
		}
	}
	if len(missing) == 0 {
		return nil
	}
	f.Connection.Mapper.Reset() // the next look asks again
	return loop.Waiting{
		Condition: kubermaticv1.ConditionApplied, Reason: kubermaticv1.ReasonKindNotServed, Recheck: requiredRecheck,
		Message: fmt.Sprintf("the user cluster does not serve %s, which this version needs: install what brings it",
			strings.Join(missing, ", ")),
	}
}
