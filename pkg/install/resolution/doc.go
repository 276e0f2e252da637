// Package resolution resolves an AddonInstallation on a cluster to version, values, source and inputs. It knows none
// of its callers: the installing controller, admission, and the upgrade check.
//
// The steps in order; a caller takes as many as it can:
//
//   - InstalledOnRecord, InstalledInStatus: the installed version, by one definition.
//   - Request.Choose: the version from the add-on's entry in the merged catalogue, for a described
//     cluster; or a refusal with reason and message. CheckUpgrade does so for another Kubernetes.
//   - Request.OnRecord: whether a record has the refused content that addonRef.digest names.
//   - Choice.Values: merged layers of values, checked against the form. Layers reads those from
//     elsewhere, which admission can't.
//   - References: the objects on the seed that valuesFrom and sources name.
//   - Inputs: the two hashes that decide whether there is anything to do.
//
// It never writes, never fetches content and never calls a user cluster. Errors have no value: values may be secret.
package resolution
