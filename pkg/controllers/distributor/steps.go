package distributor

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor/copies"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor/fleet"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor/seed"
	"github.com/trellis-addons/trellis/pkg/loop"
)

// facts are what one pass knows; each step adds to them.
type facts struct {
	// readings are all authored and generated catalogues.
	readings []*reading
	// leave are the versions of core add-ons that clusters are to leave.
	leave catalogue.Leave
	// claims decide whose add-ons are.
	claims catalogue.Claims
	merged catalogue.Merged
	// isNewMerge says that this pass merged, and did not find the last merge.
	isNewMerge bool
	// sources are the versions with sources, by catalogue.
	sources map[string][]catalogue.SourceUse
	// secrets are copied with merged; secretProblems say by name why one is not.
	secrets        seed.Secrets
	secretProblems map[string]string
	targets        []seed.Target
	// sets are copied, by name; setFindings say how all sets stand, by UID.
	sets        map[string]*copies.Set
	setFindings map[types.UID]fleet.Finding
	// valuesProblems say by name why a Secret with values is not copied, valuesSets which sets name it.
	valuesProblems map[string]string
	valuesSets     map[string]map[types.UID]bool
	userFacts
	// allSets are all AddonSets, as every step sees them.
	allSets []v1.AddonSet
	// restored are the bytes of the last valid specs of refused catalogues.
	restored int
	// recheck is when to make the next pass without an event; 0: never.
	recheck time.Duration
	// troubles are failures that don't end the pass.
	troubles []error
}

func (f *facts) trouble(err error) {
	if err != nil {
		f.troubles = append(f.troubles, err)
	}
}

// recheckIn has the next pass made after a time, or sooner.
func (f *facts) recheckIn(after time.Duration) {
	if f.recheck == 0 || after < f.recheck {
		f.recheck = after
	}
}

func failed(err error) loop.Outcome { return loop.RetryAt{Message: err.Error()} }

func (r *Reconciler) steps() []loop.Step[facts] {
	return []loop.Step[facts]{
		{Name: "read", Run: r.read},           // catalogues become sources, invalid ones by their last valid spec
		{Name: "remember", Run: r.remember},   // keep last valid specs, before they are on any seed
		{Name: "users", Run: r.judgeUsers},    // who may use which Secret
		{Name: "own", Run: r.own},             // whose the add-ons were, and who may take some over
		{Name: "merge", Run: r.merge},         // all sources become one catalogue; what changed is announced
		{Name: "keep", Run: r.keepOwners},     // whose the add-ons are is kept, before seeds get them
		{Name: "secrets", Run: r.findSecrets}, // find the Secrets that go along
		{Name: "sets", Run: r.readSets},       // which AddonSets are copied
		{Name: "values", Run: r.findValues},   // find the Secrets with values that sets name
		{Name: "discover", Run: r.discover},   // find the seeds and the way to them
		{Name: "report", Run: r.report},       // what is known of each catalogue, for its status
		{Name: "dispatch", Run: r.dispatch},   // give every seed's worker what is wanted
		{Name: "tidy", Run: r.tidy},           // drop specs that are not the last valid ones any more
	}
}
