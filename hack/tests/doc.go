// Command tests runs the tests of this checkout. Usage:
//
//	tests                     every package, in the short form: `make test`
//	tests long                what needs repetition, part by part: `make test-long`
//	tests check               what changed since a commit, and what imports it: `make check`
//	tests names FILE...       the names of the tests that passed, from the output of `go test -json`
//	tests names -before A -after B -renames R
//	                          fails and lists the names of A that B lacks
//
// What runs is planned by functions that only decide: packages suite, change and parts. Package run starts the plans'
// commands, results reads what they print.
//
// Output is that of go test, whose last lines count packages. An interrupt ends what runs, and the command waits for
// it.
package main
