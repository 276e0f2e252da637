// Package chart renders Helm charts with Helm's own parts: its loader (from memory, never from a
// folder, so that links and lock files on disk do not matter), its way of merging values, its
// engine and its order of manifests.
//
// What Helm does beyond that is left out or done here. There is no cluster to ask (`lookup` finds
// the objects of the Input only, lookup.go), no name service, no environment, no plugin and no
// download: a dependency that is not vendored is refused. The values' schema is checked here, since
// Helm's check reads files and URLs that a schema names (V14). Notes are dropped. Hooks are given
// beside the objects, those of tests too; they count in the same limits. One of an event that Helm
// does not know is left out, as Helm does, and so is a delete policy that is none.
//
// The cluster's template data is in .Values.kkp, except for charts whose schema refuses keys it
// does not know. Numbers are float64, as Helm has them, so that a chart can compare them with those
// of its own values.yaml.
//
// Where the data hold the cluster's secrets, text that function tpl renders sees them only if it is
// the chart's own or the catalogue's (tpl.go); calls of it are found and written anew by calls.go,
// data are cleaned by cleaning.go.
//
// Helm prints warnings, some with values in them, through Go's standard logger; they are dropped
// while a chart is rendered.
package chart
