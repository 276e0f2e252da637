// Package sets counts what AddonSets cost on one seed: the set controller runs in a process of its own behind a gate, which sees every
// request, over a real API server with hundreds of Clusters (the test) or 5,000 (the benchmark), on which package standins plays KKP,
// the distributor and the installation controller.
//
// The bars: a roll-out writes each installation that changes once, and no other; the status of a set at most every 2 s; what
// changes no installation writes none, a restart included; and as many clusters move at once as may, never more.
package sets
