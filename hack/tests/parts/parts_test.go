package parts

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trellis-addons/trellis/hack/tests/suite"
	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/hostile"
)

// checkout is the top folder, and its packages.
func checkout(t *testing.T) (string, []suite.Package) {
	t.Helper()
	root, err := binaries.Root()
	if err != nil {
		t.Fatal(err)
	}
	all, err := suite.List(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	return root, all
}

// measuring are packages whose figures the race detector would change. What they measure runs under it in the other
// packages' tests.
var measuring = regexp.MustCompile(`^test/(bench|soak)(/|$)`)

// Red when a test is left out of the table, or is in it in its short form only, or without the race detector.
func TestEveryTestRunsInFull(t *testing.T) {
	root, all := checkout(t)
	test := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Example)\w*)\(`)
	running := map[string][]Part{} // by the package's folder
	for _, part := range Parts() {
		for _, one := range part.packages(all) {
			if part.Bench == "" && (part.Race || measuring.MatchString(one.Folder)) {
				running[one.Folder] = append(running[one.Folder], part)
			}
		}
	}
	for _, one := range all {
		for _, file := range one.TestFiles {
			text, err := os.ReadFile(filepath.Join(root, one.Folder, file))
			if err != nil {
				t.Fatal(err)
			}
			for _, match := range test.FindAllStringSubmatch(string(text), -1) {
				if !slices.ContainsFunc(running[one.Folder], func(part Part) bool { return part.runs(match[1]) }) && match[1] != "TestMain" {
					t.Errorf("no part runs %s of %s under the race detector", match[1], one.Folder)
				}
			}
		}
	}
}

// runs says whether the part's expressions choose a test of its packages.
func (p Part) runs(test string) bool {
	return regexp.MustCompile(p.Run).MatchString(test) && (p.Skip == "" || !regexp.MustCompile(p.Skip).MatchString(test))
}

// Red when a benchmark is in no part: it would never run.
func TestEveryBenchmarkRuns(t *testing.T) {
	root, all := checkout(t)
	benchmark := regexp.MustCompile(`(?m)^func (Benchmark\w+)\(`)
	for _, one := range all {
		for _, file := range one.TestFiles {
			text, err := os.ReadFile(filepath.Join(root, one.Folder, file))
			if err != nil {
				t.Fatal(err)
			}
			for _, match := range benchmark.FindAllStringSubmatch(string(text), -1) {
				runs := func(part Part) bool {
					return part.Bench != "" && slices.Contains(part.Packages, one.Folder) &&
						regexp.MustCompile(part.Bench).MatchString(match[1]) &&
						(part.Skip == "" || !regexp.MustCompile(part.Skip).MatchString(match[1]))
				}
				if !slices.ContainsFunc(Parts(), runs) {
					t.Errorf("no part runs %s of %s", match[1], one.Folder)
				}
			}
		}
	}
}

// Red when a part has a name of another, says not why it is long, is for packages that are not there, or takes more
// than half a tenth.
func TestPartsAreWhole(t *testing.T) {
	_, all := checkout(t)
	names := map[string]bool{}
	for _, part := range Parts() {
		if names[part.Name] || !regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`).MatchString(part.Name) {
			t.Errorf("the name %q is another part's, or no name", part.Name)
		}
		names[part.Name] = true
		if part.Why == "" || part.Minutes < 1 || part.Minutes > 4 && part.Apart == "" {
			t.Errorf("part %s takes %d minutes, since %q", part.Name, part.Minutes, part.Why)
		}
		for _, pattern := range part.Packages {
			folder := strings.TrimSuffix(pattern, "/...")
			below := func(p suite.Package) bool { return strings.HasPrefix(p.Folder+"/", folder+"/") }
			if !slices.ContainsFunc(all, below) {
				t.Errorf("part %s: there is no package %s", part.Name, pattern)
			}
		}
	}
	if sum := Minutes(Parts()); sum > 125 {
		t.Errorf("all parts take %d minutes, 125 at most: two hours, as CONTRIBUTING.md says", sum)
	}
}

// Red when a part is in two tenths, or in none without a reason, or a tenth takes longer than a commit's check can give it (35
// minutes, of which tests take 22, and lint, verify and demos 5), or has little.
func TestTenthsAreAllPartsButThoseApart(t *testing.T) {
	count := map[string]int{}
	for i, tenth := range Tenths(Parts()) {
		if minutes := Minutes(tenth); minutes < 4 || minutes > 8 {
			t.Errorf("tenth %d takes %d minutes", i, minutes)
		}
		for _, part := range tenth {
			count[part.Name]++
		}
	}
	for _, part := range Parts() {
		if count[part.Name] > 1 || (count[part.Name] == 0) != (part.Apart != "") {
			t.Errorf("part %s is in %d tenths, and is apart since %q", part.Name, count[part.Name], part.Apart)
		}
		// `.ci/run` does not build what packages need that `make test` leaves out.
		needsMore := slices.ContainsFunc(part.Packages, func(folder string) bool { return suite.Elsewhere[folder] != "" })
		if part.Apart == "" && (part.Bench != "" || needsMore) {
			t.Errorf("part %s measures, or needs programs of its own, and is in a tenth", part.Name)
		}
		// What it tells is judged by a release: a commit may change what is written, and says so in the changelog.
		if part.Apart == "" && slices.Contains(part.Packages, "test/upgrade") {
			t.Errorf("part %s compares releases, and is in a tenth", part.Name)
		}
	}
}

// The siege's minutes are those of its arguments. Red when a mode or an act comes, or -each changes, and the minutes do not.
func TestTheMinutesOfTheSiege(t *testing.T) {
	// Seconds until a platform runs, of what others began as a mode ends, and until an act is removed and all is at rest.
	const start, pending, rest = 65, 1, 18
	for _, test := range []struct {
		name, modes string
		seconds     func(each float64, turns int) float64
	}{
		{"siege", "servers", func(each float64, _ int) float64 { return float64(len(hostile.Modes())) * (each*4/3 + pending) }},
		{"siege-acts", "acts", func(each float64, turns int) float64 {
			return float64(len(hostile.Acts())) * (2*float64(turns)*each + rest)
		}},
	} {
		part := must(t, test.name)
		flags := flag.NewFlagSet(test.name, flag.ContinueOnError)
		each, turns, modes := flags.Duration("each", 0, ""), flags.Int("turns", 1, ""), flags.String("modes", "", "")
		if err := flags.Parse(part.Arguments); err != nil || *modes != test.modes {
			t.Errorf("part %s has arguments %q: %v", part.Name, part.Arguments, err)
		}
		seconds := start + test.seconds(each.Seconds(), *turns)
		if part.Minutes != int(math.Round(seconds/60)) {
			t.Errorf("part %s takes %.0f s, and the table says %d minutes", part.Name, seconds, part.Minutes)
		}
	}
}

func TestTheCommitChoosesTheTenth(t *testing.T) {
	seen := map[int]bool{}
	for i := range 10 {
		seen[TenthOf(fmt.Sprintf("%08xff", i))] = true
	}
	if len(seen) != 10 {
		t.Errorf("ten commits in a row come to %d tenths", len(seen))
	}
	if got := TenthOf("0000000aff"); got != 0 {
		t.Errorf("the eleventh commit has tenth %d", got)
	}
	if got := TenthOf(""); got != 0 {
		t.Errorf("without a commit it is tenth %d", got)
	}
}

func TestCallsOfAPart(t *testing.T) {
	all := []suite.Package{
		{Folder: "pkg/install/apply", TestFiles: []string{"a_test.go"}}, {Folder: "pkg/install/apply/none"},
		{Folder: "pkg/controllers/addon", TestFiles: []string{"a_test.go"}},
		{Folder: "apis/kubermatic/v1", TestFiles: []string{"a_test.go"}},
		{Folder: "test/crash", TestFiles: []string{"a_test.go"}},
		{Folder: "test/crash/sets", TestFiles: []string{"a_test.go"}},
	}
	const common, race = "-count=1 -timeout=45m0s", "go test -vet=off -race -count=1 -timeout=45m0s"
	for _, test := range []struct {
		why  string
		part Part
		more []string
		want []string
	}{
		{
			"what no other part names, and a module of its own", must(t, "packages"), nil,
			[]string{race + " ./pkg/install/apply", race + " ./kubermatic/v1"},
		},
		{
			"some tests, with arguments", must(t, "kills"), []string{"-x", "1"},
			[]string{"go test -vet=off -race -count=1 -timeout=0 -v -run=^TestKilledAtEveryWriteEndsTheSame$ ./test/crash -args -x 1"},
		},
		{
			"arguments of a part, and more that win", must(t, "outages"), []string{"-places", "3"},
			[]string{"go test -vet=off -race -count=1 -timeout=0 -v -skip=TestKilledAtEveryWrite ./test/crash -args -places 20 -places 3"},
		},
		{
			"benchmarks", Part{Packages: []string{"test/crash/sets"}, Bench: "."}, nil,
			[]string{"go test -vet=off " + common + " -run=^$ -bench=. -benchtime=1x -p=1 ./test/crash/sets"},
		},
	} {
		var got []string
		for _, call := range test.part.Invocations(all, test.more) {
			got = append(got, strings.Join(call.Command(), " "))
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s", test.why, diff)
		}
	}
}

func must(t *testing.T, name string) Part {
	t.Helper()
	found, err := Named(name)
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	return found[0]
}

func TestPartsAreFoundByName(t *testing.T) {
	for _, test := range []struct{ names, want string }{
		{"soak", "soak"},
		{"siege,soak", "siege soak"},
		{"kills-*", "kills-access kills-sets kills-master kills-upgrades"},
		{"soak,kill", ""},
		{"", ""},
		{"[", ""},
	} {
		found, err := Named(test.names)
		var names []string
		for _, part := range found {
			names = append(names, part.Name)
		}
		if got := strings.Join(names, " "); got != test.want || (err == nil) != (test.want != "") {
			t.Errorf("%q are %q, %v", test.names, got, err)
		}
	}
}

// What passed on a commit is known for that commit, whatever passed later on others. Red when a part that passed
// elsewhere is skipped.
func TestTheRecord(t *testing.T) {
	record := Record{Folder: filepath.Join(t.TempDir(), "long")}
	if _, found, err := record.Last("kills", "a1"); found || err != nil {
		t.Errorf("before any: %t, %v", found, err)
	}
	at := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	for i, commit := range []string{"a1", "b2", "c3"} {
		pass := Pass{Commit: commit, When: at.Add(time.Duration(i) * time.Hour), Took: 90 * time.Second}
		if err := record.Add("kills", pass); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		commit, want string
		hours        time.Duration
	}{{"a1", "a1", 0}, {"b2", "b2", 1}, {"d4", "c3", 2}} {
		got, found, err := record.Last("kills", test.commit)
		want := Pass{Commit: test.want, When: at.Add(test.hours * time.Hour), Took: 90 * time.Second}
		if diff := cmp.Diff(want, got); diff != "" || !found || err != nil {
			t.Errorf("commit %s: %s %t %v", test.commit, diff, found, err)
		}
	}
	if _, found, _ := record.Last("soak", "a1"); found {
		t.Error("another part is recorded too")
	}
	if err := os.WriteFile(filepath.Join(record.Folder, "soak.txt"), []byte("a1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := record.Last("soak", "a1"); err == nil || !strings.Contains(err.Error(), "remove the file") {
		t.Errorf("a record that can't be read: %v", err)
	}
}
