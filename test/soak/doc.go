// Package soak lets a whole platform run under everything at once, and looks at what is left: a hostile API server in random
// modes, managers that are killed, calls that fail, kubeconfigs that are swapped, Clusters that are deleted and made anew,
// users who change their minds. When it ends, every cluster has what its installations ask for, object by object as before,
// and the managers hold no more memory, goroutines, files, processes than when they began.
//
// TestSoak is a part of `make test-long`, with the same order of events each time; ARGS='-soak 20m -seed 0' attacks for longer, in a new
// order that follows from a seed which it prints; -seed n repeats that one, as far as the timing of the machine does.
//
// BenchmarkHostileTenant measures what one tenant in each mode of the kit (test/hostile) costs the others, part `siege`, and holds each
// act of the kit to bars, part `siege-acts`: what an author of catalogues and a tenant do with the rights of the charts' roles.
//
// With go test's -artifacts, which make test-long gives, the logs of all processes stay.
package soak
