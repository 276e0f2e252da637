// Package strictyaml is the only reader of untrusted YAML and JSON (docs/adr/0027). Documents that
// come together share a budget.
//
// A document means what it means to kubectl (YAML 1.1 through sigs.k8s.io/yaml: `on` is true,
// numbers are int64 or float64). Unlike kubectl, it refuses duplicate keys, a second document, and
// whatever makes a small document large. Aliases count as if expanded, so size, depth and cost are
// bounded before any expansion (CVE-2019-11253).
//
// Errors say where and what, and never quote a value.
package strictyaml
