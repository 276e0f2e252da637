// Package cli is what the verbs of `kubectl addons` share: the connection of a kubeconfig's context, the place of a
// cluster's installations, output in kubectl's formats, errors in one line, and exit codes. Each verb is a package
// below this one; cmd/wiring/verbs lists them. What is shown is made by pkg/serve/view.
//
// A verb is a function that makes a cobra command from a Tool. It connects by Tool.Seed or Tool.Connect, prints by
// Tool.Print, and returns its errors: Run prints them and chooses the exit code. It changes nothing before all of its
// arguments are checked.
//
// All text that others wrote, as names, messages and errors of API servers, is cleaned before a terminal shows it
// (ADR 139).
package cli
