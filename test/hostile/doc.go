// Package hostile is the kit of an attacker: an API server that its owner controls, with a mode for each way in which it may
// lie, stall or flood; the contents that hostile authors and tenants write: repositories, kubeconfigs, release records, rules,
// values; and acts, which authors and tenants do again and again with the rights of the charts' roles.
//
// Server stands before a real API server of a fleet and sends on what its mode leaves alone, so that a client that is lied to
// in one place gets true answers in all others. Modes lists what it can do; ModesOfSeeds what the API server of a seed can do
// to the master. A mode is set at any time, also in the middle of an exchange, and each has a dose that hurts a client that
// believes it. Set(Truth) ends it.
//
// Named tests of single attacks, the fuzzer over modes and the soak test (test/soak) all use this kit, so that a mode that is
// added here is tried by all of them. Acts has the acts; the siege (test/soak) does each of them. A new one needs a name, what its steps
// write, the label LabelAct on all of that, and a row in TestActsWriteWhatTheyTell.
//
// Attacks by those who have a role of the charts, and what tries them:
//
//   - F1, rules of health that double what they bind: act doubling-rules.
//   - F2, rules that are dear to check: act dear-rules.
//   - F3, version names that fill what every cluster is offered: act long-versions.
//   - F5, records that no packing makes small: act random-records.
//   - F6, an AddonSet of type Core without manage-core: TestWhoMayWrite in test/admission, setRequests.
//   - F9, a set's installation deleted by the hand of the garbage collector: TestWhoMayWrite, installationRequests ("gets an owner").
//   - F10, finalizers of a cluster's users on installations: TestWhoMayWrite, installationRequests ("gets a finalizer").
//   - F11, finalizers of Clusters by a stolen token of the seed's manager: TestStolenTokensOfManagers in test/admission.
//   - F12, installations with large values: act large-values; by annotations: act large-metadata; for Clusters that
//     do not exist: act made-up-clusters.
//
// Attacks by servers, and by who may push to a repository: act many-indexes, whose memory is the seed's, and act moving-repository, whose
// writes are the master's.
package hostile
