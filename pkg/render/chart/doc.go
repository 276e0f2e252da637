// Package chart renders Helm charts with Helm's own parts: its loader (from memory, so that links
// and lock files on disk do not matter), its merging of values, its engine and its order of
// manifests.
//
// What Helm does beyond that is left out or done here. There is no cluster to ask (`lookup` finds
// the objects of the Input only, lookup.go), no name service, no environment, no plugin and no
// download: a dependency that is not vendored is refused. The values' schema is checked here, since
// Helm's check reads files and URLs that a schema names (V14). Notes are dropped. Hooks are given
// beside the objects, also those of tests; they count in the same limits. An event or delete policy
// that Helm does not know is left out, as Helm does.
//
// The cluster's template data is in .Values.kkp for charts that name it (ADR 114), except for charts whose schema refuses unknown
// keys. Its secrets are found by lookup. Numbers are float64, as in Helm, so that a chart can compare them with those of its own
// values.yaml.
//
// Where the data have the cluster's secrets, text that function tpl renders sees them only if it is
// the chart's own or the catalogue's (tpl.go). Calls of it are rewritten by calls.go, data are
// cleaned by cleaning.go.
//
// Helm prints warnings, some with values in them, through Go's standard logger; they are dropped
// while a chart is rendered.
package chart
