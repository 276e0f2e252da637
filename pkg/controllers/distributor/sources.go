package distributor

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/conditions"
)

// fetchReasons are what installations say of sources, worst first: nobody but the catalogue's admin, or its source's, can mend it.
var fetchReasons = []string{v1.ReasonArtifactNotFound, v1.ReasonArtifactRefused, v1.ReasonSourceNotServed, v1.ReasonFetchFailed}

// unfetched are the add-ons of which installations on a seed say that their content can't be had, with the worst reason of each.
type unfetched map[string]string

// note takes down what an installation says. An add-on is one that the seed is given: what else it says that it has is nobody's.
func (u unfetched) note(addon, reason string) {
	at := slices.Index(fetchReasons, reason)
	if at < 0 || u[addon] != "" && slices.Index(fetchReasons, u[addon]) <= at {
		return
	}
	u[addon] = reason
}

// of is what installations of some add-ons say, for a seed's row and for the condition; reason is the worst.
func (u unfetched) of(digests map[string]string) (reason, text string) {
	worst, told := len(fetchReasons), []string{}
	for _, addon := range slices.Sorted(maps.Keys(digests)) {
		said := u[addon]
		if said == "" {
			continue
		}
		worst = min(worst, slices.Index(fetchReasons, said))
		if len(told) < addonsTold {
			told = append(told, fmt.Sprintf("%q: %s", addon, said))
		}
	}
	if len(told) == 0 {
		return "", ""
	}
	return fetchReasons[worst], "installations can't get the content of " + strings.Join(told, ", ")
}

// addonsTold is how many add-ons a row names.
const addonsTold = 3

// projectSources says whether what the entries name as their sources can be had: their Secrets, as the master has them, and the content,
// as installations on the seeds found it. It never makes Ready False: the catalogue is on the seeds.
func projectSources(object *v1.AddonCatalogue, known outcome, seeds []seedState) {
	list := &object.Status.Conditions
	if known.parent != "" || len(known.digests) == 0 {
		conditions.Remove(list, v1.ConditionSourcesReady) // that of the catalogue in git has it
		return
	}
	reason, told := v1.ReasonSecretNotHandedOn, []string{}
	for _, name := range slices.Sorted(maps.Keys(known.secretProblems)) {
		told = append(told, fmt.Sprintf("Secret %q is not handed on: %s", name, known.secretProblems[name]))
	}
	worst := len(fetchReasons)
	for _, seed := range seeds[:min(len(seeds), seedsListed)] {
		found, text := seed.unfetched.of(known.digests)
		if text == "" {
			continue
		}
		worst = min(worst, slices.Index(fetchReasons, found))
		told = append(told, fmt.Sprintf("seed %q: %s", seed.name, text))
	}
	if len(known.secretProblems) == 0 && worst < len(fetchReasons) {
		reason = fetchReasons[worst]
	}
	if len(told) == 0 {
		conditions.True(list, object.Generation, v1.ConditionSourcesReady, v1.ReasonSourcesReady, "no installation says otherwise")
		return
	}
	conditions.False(list, object.Generation, v1.ConditionSourcesReady, reason, strings.Join(told, "; "))
}
