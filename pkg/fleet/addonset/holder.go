package addonset

import "slices"

// Holder returns which of several sets, in the order of their claims, gets a thing that all of them want in a cluster.
// While an upgrade of the cluster's Kubernetes is pending, it is the first set that is for the next version and not for
// the present one; otherwise it is the first set for the cluster as it is. False: no set gets it.
func Holder[S any](wanting []S, comes, isAbout func(S) bool) (holder S, isThere bool) {
	for _, has := range []func(S) bool{comes, isAbout} {
		if at := slices.IndexFunc(wanting, has); at >= 0 {
			return wanting[at], true
		}
	}
	return holder, false
}
