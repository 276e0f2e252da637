// Package strictyaml is the only reader of untrusted YAML and JSON (docs/adr/0027). Documents that are read together
// share a budget.
//
// A document has the same meaning as for kubectl (YAML 1.1 through sigs.k8s.io/yaml: `on` is true, numbers are int64
// or float64). Unlike kubectl, it refuses duplicate keys, a second document, and everything that makes a small
// document large. Aliases count as if expanded, so size, depth and cost are bounded before any expansion
// (CVE-2019-11253).
//
// Errors name the place and the problem, and never quote a value.
package strictyaml
