// Package sets tells stories of AddonSets with every real part in one process: the distributor of a master, the controllers of a
// seed by their own wiring, sources, and the API servers of user clusters, which can be stopped. The platform's API server is
// master, seed and one of the user clusters. Nobody runs pods: what a test wants not to be Ready asks for some.
package sets
