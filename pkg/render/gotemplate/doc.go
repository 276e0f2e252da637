// Package gotemplate renders manifests written like KKP's add-ons: a folder of *.yaml files with Go templates, the
// cluster's template data at the root and the values under .Variables.
//
// All files below the folder, in lexical order, are one set of templates: each file can use the templates that others
// define. They are executed one after the other into one output, in which each file begins a document. KKP gets the
// same result by joining the files, but loses track of them; here every error names file and line.
//
// Each file's tree gets marks: calls without output, at the start of every branch and loop body and before every
// piece of text. A mark records the place and checks the time. So a loop ends when time is up, and a mistake in the
// rendered YAML is reported with the line of the template.
//
// Functions are sprig's and KKP's (pkg/addon there), without those that read the environment or the network. A
// missing key is empty, so `default` works; one that reaches the output reads "<no value>", and that is an error.
package gotemplate
