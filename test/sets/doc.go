// Package sets tells stories of AddonSets with every real part: the distributor of a master, the controllers of seeds by their own wiring,
// sources, and the API servers of user clusters, which can be stopped. Most worlds are in one process, with one seed: its API server is
// that of the master and of one user cluster too. Where a master or a seed is lost, or restored, there are two seeds, and each has an API
// server of its own; the master's manager is its program then. Nobody runs pods: what a test wants not to be Ready asks for some.
package sets
