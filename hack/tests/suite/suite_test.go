package suite

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/trellis-addons/trellis/test/binaries"
)

func TestConcurrencyIsSeenInTheSource(t *testing.T) {
	for _, test := range []struct {
		why, code string
		want      bool
	}{
		{"nothing of it", "import \"fmt\"\nfunc f() { fmt.Println() }", false},
		{"a goroutine", "func f() { go f() }", true},
		{"a channel", "var c chan int", true},
		{"a channel as a parameter", "func f(c <-chan int) {}", true},
		{"a lock", "import \"sync\"\nvar m sync.Mutex", true},
		{"an atomic", "import \"sync/atomic\"\nvar n atomic.Int64", true},
		{"a group", "import \"golang.org/x/sync/errgroup\"\nvar g errgroup.Group", true},
		{"a word in a comment", "// go chan sync\nvar a = \"go f()\"", false},
	} {
		files := fstest.MapFS{
			"pkg/a/a.go": {Data: []byte("package a\n" + test.code)}, "pkg/a/b.go": {Data: []byte("package a")},
		}
		for _, p := range []Package{
			{Folder: "pkg/a", Files: []string{"b.go", "a.go"}},
			{Folder: "pkg/a", Files: []string{"b.go"}, TestFiles: []string{"a.go"}},
		} {
			if got, err := IsConcurrent(files, p); got != test.want || err != nil {
				t.Errorf("%s: %t, %v", test.why, got, err)
			}
		}
	}
	if _, err := IsConcurrent(fstest.MapFS{}, Package{Folder: "a", Files: []string{"a.go"}}); err == nil {
		t.Error("a file that is gone has no concurrency")
	}
}

// Below test, packages that start control planes run without the detector, others by the same rule as all.
func TestWhatTheDetectorWatches(t *testing.T) {
	concurrent := []byte("package a\nvar c chan int")
	files := fstest.MapFS{}
	var all []Package
	for folder, imports := range map[string][]string{
		"pkg/a": {fleet}, "test/fleet": nil, "test/lab": {fleet}, "test/stories": {Module + "/test/lab"},
		"test/cost": nil, "test/plain": nil, "hack/release": nil,
	} {
		files[folder+"/a.go"] = &fstest.MapFile{Data: concurrent}
		all = append(all, Package{Path: Module + "/" + folder, Folder: folder, Files: []string{"a.go"}, Imports: imports})
	}
	files["test/plain/a.go"].Data = []byte("package a")
	files["pkg/a/a_test.go"] = &fstest.MapFile{Data: []byte(`package a
func TestSum(t *testing.T) { long.Heavy(t) }
func TestLock(t *testing.T) { long.Skip(t, "part", "why"); heavy.Heavy(t) }
func TestAll(t *testing.T) { t.Run("some", func(t *testing.T) { long.Heavy(t) }) }`)}
	for i := range all {
		if all[i].Folder == "pkg/a" {
			all[i].TestFiles = []string{"a_test.go"}
		}
	}
	races, err := Races(files, all)
	if err != nil {
		t.Fatal(err)
	}
	for folder, want := range map[string]bool{
		"pkg/a": true, "test/fleet": false, "test/lab": false, "test/stories": false, "test/cost": true, "test/plain": false,
		"hack/release": false,
	} {
		if got := races[Module+"/"+folder].Concurrent; got != want {
			t.Errorf("%s is watched: %t", folder, got)
		}
	}
	if diff := cmp.Diff([]string{"TestAll", "TestSum"}, races[Module+"/pkg/a"].Heavy); diff != "" {
		t.Errorf("heavy tests (-want +got):\n%s", diff)
	}
}

// Few calls of go test run all packages, the longest first, and the kinds by their own module.
func TestThePlanOfTheShortForm(t *testing.T) {
	tests := []string{"a_test.go"}
	all := []Package{
		{Path: "a", Folder: "pkg/a", TestFiles: tests}, {Path: "b", Folder: "pkg/b", TestFiles: tests},
		{Path: "c", Folder: "pkg/c", TestFiles: tests}, {Path: "d", Folder: "pkg/d", TestFiles: tests},
		{Path: "e", Folder: "pkg/e"}, {Path: "f", Folder: "test/ocm", TestFiles: tests},
		{Path: "v1", Folder: "apis/kubermatic/v1", TestFiles: tests},
	}
	races := map[string]Race{"b": {Concurrent: true}, "c": {Concurrent: true, Heavy: []string{"TestSum", "TestAll"}}, "d": {Heavy: []string{"TestIgnored"}}}
	var got []string
	for _, call := range Short(InTest(all), races, Seconds{"pkg/c": 9, "pkg/d": 5}) {
		got = append(got, strings.Join(append(append([]string{call.Root}, call.Environment()...), call.Command()...), " "))
	}
	want := []string{
		". CGO_ENABLED=1 go test -vet=off -race -short -p=3 -timeout=40m0s ./pkg/c ./pkg/b",
		". CGO_ENABLED=0 go test -vet=off -short -p=3 -timeout=40m0s -run=^(TestAll|TestSum)$ ./pkg/c",
		". CGO_ENABLED=0 go test -vet=off -short -p=3 -timeout=40m0s ./pkg/d ./pkg/a",
		"apis CGO_ENABLED=0 go test -vet=off -short -p=3 -timeout=40m0s ./kubermatic/v1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Red when packages of either module are not found, or what `make test` leaves out is not there.
func TestPackagesOfThisCheckout(t *testing.T) {
	root, err := binaries.Root()
	if err != nil {
		t.Fatal(err)
	}
	all, err := List(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	folders := map[string]Package{}
	for _, one := range all {
		folders[one.Folder] = one
	}
	for _, folder := range []string{"apis/kubermatic/v1", "pkg/install/apply", "hack/tests/suite", "charts"} {
		if _, found := folders[folder]; !found {
			t.Errorf("package %s is not found", folder)
		}
	}
	for folder, why := range Elsewhere {
		if !folders[folder].HasTests() {
			t.Errorf("%s has no tests, and is left out since %s", folder, why)
		}
	}
	measured, err := Measured()
	if err != nil {
		t.Fatal(err)
	}
	for folder := range measured {
		if !folders[folder].HasTests() {
			t.Errorf("%s has a time for %s, which has no tests", SecondsFile, folder)
		}
	}
}

func TestTimesAreKept(t *testing.T) {
	before, err := parseSeconds("# times\n\npkg/a 10\npkg/gone 20\npkg/b 4\n")
	if err != nil {
		t.Fatal(err)
	}
	packages := []Package{{Folder: "pkg/a"}, {Folder: "pkg/b"}, {Folder: "pkg/c"}, {Folder: "pkg/d"}}
	after := before.With(Seconds{"pkg/a": 1, "pkg/c": 30.4, "pkg/d": 4}, packages)
	_, lines, _ := strings.Cut(after.String(), "\n")
	if diff := cmp.Diff("pkg/c 30\npkg/b 4\npkg/d 4\n", lines); diff != "" {
		t.Error(diff)
	}
	if got := after.Of("pkg/a"); got != usual {
		t.Errorf("a package without a line takes %v s", got)
	}
	for _, wrong := range []string{"pkg/a", "pkg/a x", "pkg/a -1", "pkg/a 1 2"} {
		if _, err := parseSeconds(wrong); err == nil || !strings.Contains(err.Error(), SecondsFile) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}
