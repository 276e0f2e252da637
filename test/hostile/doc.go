// Package hostile is the kit of an attacker: an API server that its owner controls, with a mode for each way in which it may
// lie, stall or flood, and the contents that hostile authors and tenants write: repositories, kubeconfigs, release records.
//
// Server stands before a real API server of a fleet and sends on what its mode leaves alone, so that a client that is lied to
// in one place gets true answers in all others. Modes lists what it can do; ModesOfSeeds what the API server of a seed can do
// to the master. A mode is set at any time, also in the middle of an exchange, and each has a dose that hurts a client that
// believes it. Set(Truth) ends it.
//
// Named tests of single attacks, the fuzzer over modes and the soak test (test/soak) all use this kit, so that a mode that is
// added here is tried by all of them.
package hostile
