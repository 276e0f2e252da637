package usage

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// fetchReasons are what installations say of sources, worst first: nobody but the catalogue's
// admin, or its source's, can mend it.
var fetchReasons = []string{v1.ReasonArtifactNotFound, v1.ReasonArtifactRefused, v1.ReasonSourceNotServed, v1.ReasonFetchFailed}

// addonsNamed is how many add-ons a text names.
const addonsNamed = 3

// Unfetched are the add-ons of which installations on a seed say that their content can't be had,
// with the worst reason of each.
type Unfetched map[string]string

// add takes down what an installation says. An add-on is one that the seed is given: what else it
// says that it has is nobody's.
func (u Unfetched) add(addon, reason string) {
	if slices.Contains(fetchReasons, reason) {
		u[addon] = Worse(u[addon], reason)
	}
}

// Of is what installations of some add-ons say, with the worst reason; both are empty where they
// say nothing.
func (u Unfetched) Of(addons map[string]string) (reason, text string) {
	var named []string
	for _, addon := range slices.Sorted(maps.Keys(addons)) {
		said := u[addon]
		if said == "" {
			continue
		}
		reason = Worse(reason, said)
		if len(named) < addonsNamed {
			named = append(named, fmt.Sprintf("%q: %s", addon, said))
		}
	}
	if reason == "" {
		return "", ""
	}
	return reason, "installations can't get the content of " + strings.Join(named, ", ")
}

// Worse is the worse of two reasons; empty is none.
func Worse(a, b string) string {
	if a == "" || b != "" && slices.Index(fetchReasons, b) < slices.Index(fetchReasons, a) {
		return b
	}
	return a
}
