package manager

import (
	"bytes"
	"flag"
	"strings"
	"testing"
)

// Red when what is wrong with an argument is followed by anything, when it does not name the flag and what is given, and when an
// argument that is no flag is passed over.
func TestWrongArgumentsAreReportedLast(t *testing.T) {
	for _, test := range []struct {
		arguments     []string
		says, problem string
		code          int
		goesOn        bool
	}{
		{[]string{"--v=2", "--namespace", "here"}, "", "", 0, true},
		{[]string{"--v=many"}, "", "invalid value \"many\" for flag -v: parse error (--help lists all flags)\n", 2, false},
		{[]string{"--misspelt"}, "", "flag provided but not defined: -misspelt (--help lists all flags)\n", 2, false},
		{[]string{"--standalone", "true"}, "", "argument \"true\" is not a flag: flags are --name=value (--help lists all flags)\n", 2, false},
		{[]string{"--help"}, "-catalogue-namespace", "", 0, false},
	} {
		var flags Flags
		set := flag.NewFlagSet("manager", flag.ContinueOnError)
		flags.Register(set)
		var out, problems bytes.Buffer
		code, goesOn := Parse(set, test.arguments, &out, &problems)
		if code != test.code || goesOn != test.goesOn || problems.String() != test.problem || !strings.Contains(out.String(), test.says) {
			t.Errorf("%q: %d, %t, %q", test.arguments, code, goesOn, problems.String())
		}
	}
}
