// Package gotemplate renders manifests written as KKP's add-ons are: a folder of *.yaml files with
// Go templates in them, the cluster's template data at the root and the values under .Variables.
//
// All files below the folder, in lexical order, are one set of templates: what one defines, all can
// use. They are executed one after the other into one output, in which each file begins a document.
// That is what KKP gets by joining the files, except that KKP first checks each file by itself and
// then loses track of them; here every error names file and line.
//
// To know where text comes from, and to end templates that run away, each file's tree is given
// marks: calls without output, at the start of every branch and loop body and before every piece of
// text. A mark notes the place and asks whether time is up. So a loop ends at its next turn, and a
// mistake in the rendered YAML is reported with the line of the template that wrote it.
//
// Functions are sprig's and KKP's (pkg/addon there), without those that read the environment or the
// network. A missing key is empty, so `default` works; one that reaches the output reads "<no
// value>", and that is an error.
package gotemplate
