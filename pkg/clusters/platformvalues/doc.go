// Package platformvalues reads a platform's settings of its clusters for all templates (ADR 102): the nodes for pods,
// proxies, registries. They are a list in a ConfigMap of the platform namespace, each item for some clusters, read
// strictly; a later item overrides an earlier one, key by key.
//
// It is pure. Package cluster keeps the list of a seed, and package templatedata has the data for templates.
package platformvalues
