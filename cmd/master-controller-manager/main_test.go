package main

import "testing"

// Red when a version that nobody can read is taken, and when one would go before what KKP's Seeds tell.
func TestTheVersionOfKKPIsForStandalone(t *testing.T) {
	for _, test := range []struct {
		version      string
		isStandalone bool
		want         string
	}{
		{"", false, ""},
		{"", true, ""},
		{"2.31.0", true, ""},
		{"v2.31.0-3-g2974df5", true, ""},
		{"abc", true, `flag --kkp-version is "abc", which is not a version such as 2.31.0`},
		{"2.31.0", false, "flag --kkp-version is for --standalone: with KKP the Seeds report the version"},
	} {
		got := ""
		if err := checkVersion(test.version, test.isStandalone); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%q, standalone %t: %q, want %q", test.version, test.isStandalone, got, test.want)
		}
	}
}
