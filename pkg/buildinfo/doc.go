// Package buildinfo says which build a program is: its version, and the commit and the commit's
// date that it was built from. No clock of the machine that built it is in there: two builds of one
// commit say the same.
//
// hack/images sets all three by the linker. What was built otherwise says what Go noted of the
// checkout.
package buildinfo
