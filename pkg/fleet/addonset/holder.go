package addonset

import "slices"

// Holder returns, of sets that want the same in a cluster, in the order of their claims, the one that has it: while
// an upgrade of its Kubernetes is pending, the first that is for the next version but not for the present one;
// otherwise the first that is for the cluster as it is. False: none has it.
func Holder[S any](wanting []S, comes, isAbout func(S) bool) (holder S, isThere bool) {
	for _, has := range []func(S) bool{comes, isAbout} {
		if at := slices.IndexFunc(wanting, has); at >= 0 {
			return wanting[at], true
		}
	}
	return holder, false
}
