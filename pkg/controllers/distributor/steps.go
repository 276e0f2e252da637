package distributor

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor/copies"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor/fleet"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor/seed"
)

// facts are the findings of one reconciliation; each step adds to them.
type facts struct {
	// readings are all authored and generated catalogues.
	readings []*reading
	// leave are the versions of core add-ons that clusters must leave.
	leave catalogue.Leave
	// claims decide about the owners of add-ons.
	claims catalogue.Claims
	merged catalogue.Merged
	// isNewMerge says that this reconciliation merged, and did not use the last merge.
	isNewMerge bool
	// sources are the versions with sources, by catalogue.
	sources map[string][]catalogue.SourceUse
	// secrets are copied with merged; secretProblems say by name why one is not.
	secrets        seed.Secrets
	secretProblems map[string]string
	targets        []seed.Target
	// sets are copied, by name; setFindings are the states of all sets, by UID.
	sets        map[string]*copies.Set
	setFindings map[types.UID]fleet.Finding
	// valuesProblems say by name why a Secret with values is not copied; valuesSets are the sets that name it.
	valuesProblems map[string]string
	valuesSets     map[string]map[types.UID]bool
	userFacts
	// allSets are all AddonSets, the same for every step.
	allSets []v1.AddonSet
	// restored is the size of the last valid specs of refused catalogues, in bytes.
	restored int
	// recheck is the delay until the next reconciliation without an event; 0: none.
	recheck time.Duration
	// troubles are failures that don't end the reconciliation.
	troubles []error
}

func (f *facts) trouble(err error) {
	if err != nil {
		f.troubles = append(f.troubles, err)
	}
}

// recheckIn starts the next reconciliation after a time, or sooner.
func (f *facts) recheckIn(after time.Duration) {
	if f.recheck == 0 || after < f.recheck {
		f.recheck = after
	}
}

func failed(err error) *loop.Outcome { return &loop.Outcome{Kind: loop.RetryAt, Message: err.Error()} }

func (r *Reconciler) steps() []loop.Step[facts] {
	return []loop.Step[facts]{
		{Name: "read", Run: r.read},           // parse catalogues into sources, invalid ones from their last valid spec
		{Name: "remember", Run: r.remember},   // save valid specs, before they are on any seed
		{Name: "users", Run: r.evaluateUsers}, // which catalogue or set may use which Secret
		{Name: "own", Run: r.own},             // the previous owners of add-ons, and new owners by take-over
		{Name: "merge", Run: r.merge},         // merge all sources into one catalogue, and report changes
		{Name: "keep", Run: r.keepOwners},     // store the owners of add-ons, before seeds get the results
		{Name: "secrets", Run: r.findSecrets}, // read the Secrets for the seeds
		{Name: "sets", Run: r.readSets},       // which AddonSets are copied
		{Name: "values", Run: r.findValues},   // read the Secrets with values that sets name
		{Name: "discover", Run: r.discover},   // find the seeds and their kubeconfigs
		{Name: "report", Run: r.report},       // the findings about each catalogue, for its status
		{Name: "dispatch", Run: r.dispatch},   // give every seed's worker its task
		{Name: "tidy", Run: r.tidy},           // delete specs that are not the last valid ones any more
	}
}
