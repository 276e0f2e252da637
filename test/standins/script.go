package standins

import (
	"hash/fnv"
	"slices"
	"strconv"
	"time"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// Fate is what becomes of an installation at one generation.
type Fate string

// Fates. Except for Unreachable and Waits, content is applied at once.
const (
	// Works: it is Ready after Takes. This is the fate where no rule says another.
	Works Fate = ""
	// Hangs: it never gets Ready; after Takes, if that is not 0, the reason is Timeout.
	Hangs Fate = "Hangs"
	// RollsBack: after Takes, what was Ready before is back, and stays so until the generation changes. A first
	// installation stays as it is instead, with reason Timeout.
	RollsBack Fate = "RollsBack"
	// Refused: the user cluster refuses an object; nothing counts as applied.
	Refused Fate = "Refused"
	// Unreachable: the user cluster doesn't answer. Whoever is being deleted stays.
	Unreachable Fate = "Unreachable"
	// Waits: nothing is applied yet; the Act has the reason (an approval, the order, an unknown version).
	Waits Fate = "Waits"
)

// Act is how one generation of an installation goes.
type Act struct {
	Fate Fate
	// Takes is how long until it is Ready, rolled back, late, or, once deleted, gone. 0 is within one pass: Ready is True before and
	// after.
	Takes time.Duration
	// Spread adds up to so much to Takes, by a hash of cluster, name, generation and Seed.
	Spread time.Duration
	Seed   string
	// Flaps, where it is not 0, is how long it is Ready, and then unhealthy, in turns.
	Flaps time.Duration
	// Reason of Ready, for Waits.
	Reason string
	// Cause is the reason of its own that the cluster has, for RollsBack and Hangs.
	Cause string
}

// takes is Takes with its part of Spread.
func (a Act) takes(installation *v1.AddonInstallation) time.Duration {
	if a.Spread <= 0 {
		return a.Takes
	}
	part := hash(a.Seed, installation.Namespace, installation.Name, strconv.FormatInt(installation.Generation, 10))
	return a.Takes + time.Duration(part%uint64(a.Spread))
}

// Rule gives installations an Act.
type Rule struct {
	// Of selects installations; nil selects all.
	Of Selector
	Act
}

// Selector says whether an installation is meant. It must not change it.
type Selector func(*v1.AddonInstallation) bool

// InClusters selects by the name of the Cluster.
func InClusters(names ...string) Selector {
	return func(installation *v1.AddonInstallation) bool {
		return slices.Contains(names, ClusterOf(installation.Namespace))
	}
}

// Share selects so many percent of the clusters, by a hash of seed and name.
func Share(seed string, percent uint64) Selector {
	return func(installation *v1.AddonInstallation) bool { return hash(seed, installation.Namespace)%100 < percent }
}

// AtVersion selects what asks for that version of an add-on.
func AtVersion(addon, version string) Selector {
	return func(installation *v1.AddonInstallation) bool {
		ref := installation.Spec.AddonRef
		return string(ref.Name) == addon && ref.Version == version
	}
}

// AtDigest selects what asks for that content.
func AtDigest(digest string) Selector {
	return func(installation *v1.AddonInstallation) bool { return installation.Spec.AddonRef.Digest == digest }
}

// And selects what all select.
func And(all ...Selector) Selector {
	return func(installation *v1.AddonInstallation) bool {
		return !slices.ContainsFunc(all, func(one Selector) bool { return !one(installation) })
	}
}

// script is a list of rules, of which the first that selects counts.
type script []Rule

func (s script) act(installation *v1.AddonInstallation) Act {
	for _, rule := range s {
		if rule.Of == nil || rule.Of(installation) {
			return rule.Act
		}
	}
	return Act{}
}

func hash(parts ...string) uint64 {
	sum := fnv.New64a()
	for _, part := range parts {
		_, _ = sum.Write([]byte(part + "\x00"))
	}
	mixed := sum.Sum64() // the last bits of alike names are alike
	mixed ^= mixed >> 33
	mixed *= 0xff51afd7ed558ccd
	return mixed ^ mixed>>33
}
