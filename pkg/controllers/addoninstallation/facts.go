package addoninstallation

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/apply"
	"github.com/trellis-addons/trellis/pkg/calls"
	"github.com/trellis-addons/trellis/pkg/cluster"
	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/helmrelease"
	"github.com/trellis-addons/trellis/pkg/hooks"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/ownership"
	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/resolution"
	"github.com/trellis-addons/trellis/pkg/revision"
	"github.com/trellis-addons/trellis/pkg/survey"
	"github.com/trellis-addons/trellis/pkg/target"
	"github.com/trellis-addons/trellis/pkg/templatedata"
)

// facts is what a pass has found out so far. Each step fills in its part and reads those of the steps before.
type facts struct {
	installation *kubermaticv1.AddonInstallation
	memory       *memory

	cluster target.Description
	owner   ownership.Owner
	// damaged: there are records, and none can be read.
	damaged bool

	// choice is the version that it gets; without one before step resolve, and where it ended the pass.
	choice resolution.Choice
	// withdrawn says that the installed version left the catalogue, where that was not said before.
	withdrawn string
	// left tells once that the installed version is left (choice.Leaves); nothing goes back to it.
	left string

	data       templatedata.Data
	values     resolution.Values
	snapshot   fetch.Snapshot
	connection *cluster.Connection
	// wanted is a hash over all that people say, inputs one over all that objects depend on.
	wanted, inputs string

	// foreign is somebody's Helm release that is gone on with; leftovers are its objects that are not among ours.
	foreign   *helmrelease.Foreign
	leftovers ownership.Inventory

	rendered render.Result
	objects  []*unstructured.Unstructured
	hooks    []hooks.Hook
	progress apply.Progress
	health   *survey.Health

	// decision is what this pass does; steps go by it, and not by the record.
	decision revision.Decision
	// repaired names objects that were put back, fights those that are left alone; drifted tells that a look was taken.
	drifted  bool
	repaired []ownership.Key
	fights   []ownership.Key
	// misbehaved has notes about objects of which the API server said what can't be.
	misbehaved []calls.Note
	// shared tells what is shared, and what is not any more, since this pass.
	shared []string
	// shown are objects that drifted and are left as they are, since the strategy is Once.
	shown   []ownership.Key
	applied bool
	// saved is the record as this pass wrote it, whole.
	saved *revision.Record
	// held is why the hooks that run before everything but the foundation keep the rest back.
	held loop.Outcome
	// obstacle is what is in the way in the user cluster, where one call can see it.
	obstacle *apply.Obstacle
	// attempts of a hook that failed in a row, and when the next begins; 0: none did.
	attempts    int32
	nextAttempt time.Time
	now         time.Time
}

// stamp is the time of the pass as it is after it was stored: finer, what is written now would not equal what a restarted
// process writes from the record.
func (f *facts) stamp() metav1.Time { return metav1.Time{Time: f.now}.Rfc3339Copy() }

// record is the latest record, nil before the first intent.
func (f *facts) record() *revision.Record { return f.memory.record }

// adopts says whether objects that exist may be taken over.
func (f *facts) adopts() bool {
	return f.installation.Annotations[kubermaticv1.AnnotationAdopt] == "true"
}

// place tells what was seen of the user cluster from what was seen of another: one that comes or was there under the same Cluster.
func (f *facts) place() types.UID { return f.cluster.UID + "/" + f.connection.UserCluster }

func (f *facts) target() calls.Target {
	return calls.Target{
		Metadata: f.connection.Metadata, Dynamic: f.connection.Dynamic, Mapper: f.connection.Mapper, Served: f.connection,
	}
}
