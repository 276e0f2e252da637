// Package buildinfo identifies the build of a program: its version, and the commit and the commit's date that it was
// built from. It contains no clock of the build machine: two builds of one commit have the same information.
//
// hack/images sets all three by the linker. Other builds use Go's own record of the checkout.
package buildinfo
