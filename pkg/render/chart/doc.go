// Package chart renders Helm charts with parts of Helm: its loader (from memory, so that links and lock files on disk
// do not matter), its merging of values, its engine and its order of manifests.
//
// Helm's other features are left out or implemented here. There is no cluster to query (`lookup` finds only the
// objects of the Input, lookup.go), no name service, no environment, no plugin and no download: a dependency that is
// not vendored is refused. The values' schema is checked here, since Helm's check reads files and URLs that a schema
// names (V14). Notes are dropped. Hooks are returned next to the objects, also those of tests; they count in the same
// limits. An event or delete policy that Helm does not know is left out, as in Helm.
//
// The cluster's template data is in .Values.kkp for charts that name it (ADR 114), except for charts whose schema
// refuses unknown keys. Function lookup finds its secrets. Numbers are float64, as in Helm, so that a chart can
// compare them with those of its own values.yaml.
//
// If the data has the cluster's secrets, text that function tpl renders sees them only if it comes from the chart or
// the catalogue (tpl.go). calls.go rewrites calls of tpl, cleaning.go cleans data.
//
// Helm prints warnings, some with values in them, through Go's standard logger; they are dropped while a chart is
// rendered.
package chart
