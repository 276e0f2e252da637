// Package soak lets a whole platform run under everything at once, and looks at what is left: a hostile API server in random
// modes, managers that are killed, calls that fail, kubeconfigs that are swapped, Clusters that are deleted and made anew,
// users who change their minds. When it ends, every cluster has what its installations ask for, object by object as before,
// and the managers hold no more memory, goroutines, files, processes than when they began.
//
// TestSoak is short in `make test`, with the same order of events each time. `make test-long PART=soak ARGS='-soak 20m'` is the real
// thing, in a new order that follows from a seed, which it prints; '-seed n' repeats that one, as far as the machine's timing does.
//
// BenchmarkHostileTenant measures what one tenant in each mode of the kit (test/hostile) costs the others.
package soak
