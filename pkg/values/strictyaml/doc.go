// Package strictyaml decodes one YAML or JSON document from people we do not trust. It is the only
// room that does: see docs/adr/0027. Documents that come together share a budget.
//
// The meaning of a document is kubectl's (YAML 1.1 through sigs.k8s.io/yaml: `on` is true, numbers
// are int64 or float64). What kubectl forgives is refused: a key written twice, a second document,
// and everything that makes a small document large. Aliases are counted as if they were written
// out, so a document that passes has a size, a depth and a cost that are bounded before anything is
// expanded (CVE-2019-11253).
//
// Errors say where and what, and never quote a value.
package strictyaml
