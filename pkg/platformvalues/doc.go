// Package platformvalues reads what a platform says of its clusters to all templates (ADR 102): where pods may
// run, proxies, registries. It is a list in a ConfigMap of the platform namespace, each item for some clusters,
// read strictly; a later item counts above an earlier one, key by key.
//
// It is pure. Package cluster keeps the list of a seed, and package templatedata has what templates see of it.
package platformvalues
