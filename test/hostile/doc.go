// Package hostile is the kit of an attacker: an API server that its owner controls, with a mode for each way in which
// it may lie, stall or flood; the contents that hostile authors and tenants write: repositories, kubeconfigs, release
// records, rules, values; and acts, which authors and tenants repeat with the rights of the charts' roles.
//
// Server is a proxy in front of a real API server of a fleet. It forwards all that its mode does not change, so that
// a client gets one false answer and otherwise true ones. Modes lists its modes; ModesOfSeeds those of a seed's API
// server towards the master. A mode can be set at any time, also in the middle of an exchange, and each has a dose
// that harms a client that trusts it. Set(Truth) ends it.
//
// Tests of single attacks, the fuzzer over modes and the soak test (test/soak) all use this kit, so that all of them
// try a mode that is added here. Acts has the acts; the siege (test/soak) performs each of them. A new one needs a
// name, the writes of its steps, the label LabelAct on all written objects, and a row in TestActsWriteWhatTheyDescribe.
//
// Attacks by users with a role of the charts, and the acts and tests that try them:
//
//   - F1, health rules that double the values that they bind: act doubling-rules.
//   - F2, rules that are expensive to check: act dear-rules.
//   - F3, version names that fill each cluster's available catalogue: act long-versions.
//   - F5, records that can't be compressed: act random-records.
//   - F6, an AddonSet of type Core without manage-core: TestWhoMayWrite in test/admission, setRequests.
//   - F9, a set's installation deleted through the garbage collector: TestWhoMayWrite, installationRequests ("gets an owner").
//   - F10, finalizers of a cluster's users on installations: TestWhoMayWrite, installationRequests ("gets a finalizer").
//   - F11, finalizers of Clusters by a stolen token of the seed's manager: TestStolenTokensOfManagers in test/admission.
//   - F12, installations with large values: act large-values; by annotations: act large-metadata; for Clusters that
//     do not exist: act made-up-clusters.
//
// Attacks by servers, and by users who may push to a repository: act many-indexes, which uses the seed's memory, and
// act moving-repository, which causes writes of the master.
package hostile
