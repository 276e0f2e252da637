// Package installing measures what installing costs, side by side with clients that do the bare work, in turns on one API
// server: the seed manager runs as a process of its own, built from source.
//
// One API server is seed and user cluster, as in a platform of one cluster, and one namespace takes all objects. Nothing runs
// Deployments: a stand-in writes their status once, for both sides, so that installations get Ready. Package bar prints each figure
// beside its bar: ratios, counts and sizes are held, times are not. The bar of traces is one on pairs of rounds, and -hold-tracing asks
// for it to be held.
//
// test/bench/clusters has the chart, the stand-in and what tells the CPU of a process from here.
package installing
