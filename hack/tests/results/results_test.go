package results

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Red when an end of a package is not seen, or another line is taken for one.
func TestEndsOfPackagesAreRead(t *testing.T) {
	for _, test := range []struct {
		why, line string
		want      Package
		found     bool
	}{
		{"passed", "ok  \texample.com/a\t1.25s", Package{"example.com/a", Passed, 1.25}, true},
		{"with coverage", "ok  \texample.com/a\t1.25s\tcoverage: 3%", Package{"example.com/a", Passed, 1.25}, true},
		{"no test matches", "ok  \texample.com/a\t0.01s [no tests to run]", Package{"example.com/a", Passed, 0.01}, true},
		{"passed before", "ok  \texample.com/a\t(cached)", Package{"example.com/a", Cached, 0}, true},
		{"failed", "FAIL\texample.com/a\t0.50s", Package{"example.com/a", Failed, 0.5}, true},
		{"not built", "FAIL\texample.com/a [build failed]", Package{"example.com/a", Failed, 0}, true},
		{"a test's line", "--- FAIL: TestA (0.00s)", Package{}, false},
		{"the last line", "FAIL", Package{}, false},
		{"no tests", "?   \texample.com/a\t[no test files]", Package{}, false},
	} {
		if got, found := Line(test.line); got != test.want || found != test.found {
			t.Errorf("%s: %+v, %t", test.why, got, found)
		}
	}
}

// Red when a package's calls are not added up, or a package is left out of the sum.
func TestSlowestComeFirst(t *testing.T) {
	all := []Package{{"a", Passed, 1}, {"b", Failed, 3}, {"c", Cached, 0}, {"d", Passed, 2}, {"a", Passed, 1.5}, {"e", Passed, 0.4}}
	const want = `     3.0 s  b
     2.5 s  a
     2.0 s  d
     7.9 s  all 5 packages, 2 of them in less than 1 s, of which 1 cached
`
	if diff := cmp.Diff(want, Table(all)); diff != "" {
		t.Error(diff)
	}
}

// What is printed of JSON is what go test prints without it: the output of failed tests and the ends of packages.
func TestReportPrintsWhatFailed(t *testing.T) {
	lines := []string{
		`{"Action":"start","Package":"a"}`,
		`{"Action":"output","Package":"a","Test":"TestGood","Output":"noise\n"}`,
		`{"Action":"pass","Package":"a","Test":"TestGood"}`,
		`{"Action":"output","Package":"a","Test":"TestBad","Output":"it is wrong\n"}`,
		`{"Action":"fail","Package":"a","Test":"TestBad"}`,
		`{"Action":"output","Package":"a","Output":"FAIL\ta\t0.1s\n"}`,
		`{"Action":"fail","Package":"a"}`,
		`{"ImportPath":"b","Action":"build-output","Output":"b.go:1: no\n"}`,
		`{"Action":"output","Package":"c","Output":"PASS\n"}`,
		`{"Action":"output","Package":"c","Output":"ok  \tc\t0.1s\n"}`,
		`go: a plain line`,
		`{"Action":"output","Package":"d","Test":"TestCut","Output":"began\n"}`,
	}
	var report Report
	var text strings.Builder
	for _, line := range lines {
		text.WriteString(report.Add(line))
	}
	text.WriteString(report.Rest())
	want := "it is wrong\nFAIL\ta\t0.1s\nb.go:1: no\nok  \tc\t0.1s\ngo: a plain line\nbegan\n"
	if diff := cmp.Diff(want, text.String()); diff != "" {
		t.Error(diff)
	}
}

// Red when a test that was skipped or failed counts as passed, or a subtest is left out.
func TestPassedNames(t *testing.T) {
	one := `{"Action":"pass","Package":"m/b","Test":"TestB/x"}
not JSON
{"Action":"pass","Package":"m/b","Test":"TestB"}
{"Action":"skip","Package":"m/b","Test":"TestSkipped"}
{"Action":"fail","Package":"m/b","Test":"TestFailed"}
{"Action":"pass","Package":"m/b"}
`
	two := `{"Action":"pass","Package":"m/a","Test":"TestA"}
{"Action":"pass","Package":"m/b","Test":"TestB"}
`
	got, err := PassedTests("m", strings.NewReader(one), strings.NewReader(two))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a TestA", "b TestB", "b TestB/x"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestCompareNames(t *testing.T) {
	for _, test := range []struct {
		why                   string
		before, after         []string
		renames               string
		missing, masked, idle []string
	}{
		{why: "all there", before: []string{"a T", "a T/x"}, after: []string{"a T", "a T/x", "a U"}},
		{why: "a test is gone", before: []string{"a T", "a U"}, after: []string{"a T"}, missing: []string{"a U"}},
		{
			why: "a renamed test takes its subtests along", before: []string{"a T", "a T/x"}, after: []string{"b U", "b U/x"},
			renames: "# moved\n\na T -> b U\n",
		},
		{
			why: "a name that only begins the same is another test", before: []string{"a TX"}, after: []string{"a UX"},
			renames: "a T -> a U", missing: []string{"a TX"}, idle: []string{"a T -> a U"},
		},
		{why: "a package that moved", before: []string{"a T/x"}, after: []string{"b T/x"}, renames: "a -> b"},
		{
			why: "a package below one that moved stays", before: []string{"a/c T"}, after: []string{"b/c T"}, renames: "a -> b",
			missing: []string{"a/c T"}, idle: []string{"a -> b"},
		},
		{
			why: "the longer rename counts", before: []string{"a T/x"}, after: []string{"a V"},
			renames: "a T -> a U\na T/x -> a V", idle: []string{"a T -> a U"},
		},
		{
			why: "a rename to what is not there", before: []string{"a T"}, after: []string{"a T"}, renames: "a T -> a U",
			missing: []string{"a U"},
		},
		{
			why: "a port", before: []string{"a T/127.0.0.1:301"}, after: []string{"a T/127.0.0.1:302"},
			masked: []string{"a T/127.0.0.1:301 = a T/127.0.0.1:302"},
		},
		{
			why:    "each number needs one of its own",
			before: []string{"a T/1", "a T/2", "a T/3"}, after: []string{"a T/1", "a T/9"},
			masked: []string{"a T/2 = a T/9"}, missing: []string{"a T/3"},
		},
		{
			why: "numbers of tests and packages are names", before: []string{"a1 T1"}, after: []string{"a2 T1", "a1 T2"},
			missing: []string{"a1 T1"},
		},
	} {
		t.Run(test.why, func(t *testing.T) {
			renames, err := ParseRenames(test.renames)
			if err != nil {
				t.Fatal(err)
			}
			want := Difference{Missing: test.missing, Masked: test.masked, Idle: test.idle}
			if diff := cmp.Diff(want, Compare(test.before, test.after, renames)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRenamesThatSayNothing(t *testing.T) {
	for _, line := range []string{"a T", "a T -> ", " -> a T", "a -> b T", "a T -> b"} {
		if _, err := ParseRenames(line); err == nil {
			t.Errorf("%q was taken for a rename", line)
		}
	}
}
