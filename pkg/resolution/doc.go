// Package resolution says what an AddonInstallation comes to on a cluster: which version, which
// values, from which source, and what all of it amounts to. It composes rooms below and knows none
// of its callers: the controller that installs, admission, and the upgrade check of the query
// endpoint.
//
// The steps, in order; a caller takes as many as it can:
//
//   - InstalledOnRecord, InstalledInStatus: the version that the cluster has, by one definition.
//   - Request.Choose: the version that the installation gets, from the add-on's entry in the merged
//     catalogue and a description of the cluster; or a refusal, which is a reason and a sentence.
//     CheckUpgrade asks the same for a cluster with another Kubernetes.
//   - Choice.Values: the layers of values over one another, checked against the form. What is
//     written elsewhere is read by Layers, which admission has not.
//   - References: what valuesFrom and sources name on the seed.
//   - Inputs: the two hashes that say whether anything is to be done.
//
// It never writes, never fetches content and never calls a user cluster. Errors hold no value:
// values may be secret.
package resolution
