package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trellis-addons/trellis/hack/tests/change"
	"github.com/trellis-addons/trellis/hack/tests/parts"
	"github.com/trellis-addons/trellis/hack/tests/results"
	"github.com/trellis-addons/trellis/hack/tests/suite"
	"github.com/trellis-addons/trellis/test/long"
)

// fakeGo puts a shell script in the place of the go command.
func fakeGo(t *testing.T, script string) {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "go"), []byte("#!/usr/bin/env bash\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
}

func newTestSession(t *testing.T) (*session, *strings.Builder) {
	t.Helper()
	var out strings.Builder
	s := &session{checkout: t.TempDir(), commit: commit{hash: strings.Repeat("ab", 20)}, out: &out}
	s.look = func(context.Context) commit { return s.commit }
	return s, &out
}

var plan = []suite.Invocation{
	{Root: ".", Folders: []string{"pkg/bad"}, Race: true},
	{Root: ".", Folders: []string{"pkg/good"}},
}

// ends is a go command that prints the end of each package it is given: those named bad fail.
const ends = `failed=0
for word; do
  case $word in
  ./*bad) printf 'FAIL\tgithub.com/trellis-addons/trellis/%s\t2.50s\nFAIL\n' "${word#./}"; failed=1 ;;
  ./*) printf 'ok  \tgithub.com/trellis-addons/trellis/%s\t1.50s\n' "${word#./}" ;;
  esac
done
exit $failed`

// All calls run although one fails, the last line is go test's, and the run fails. Red when a failure is lost.
func TestARunGoesOnAndFails(t *testing.T) {
	fakeGo(t, ends)
	s, out := newTestSession(t)
	if err := s.runAll(t.Context(), plan); err != nil {
		t.Fatal(err)
	}
	want := `FAIL	github.com/trellis-addons/trellis/pkg/bad	2.50s
FAIL

seconds of packages:
     2.5 s  github.com/trellis-addons/trellis/pkg/bad
     2.5 s  all 1 packages, 0 of them in less than 1 s, of which 0 cached

ok  	github.com/trellis-addons/trellis/pkg/good	1.50s
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
	if err := s.verdict(); !errors.Is(err, errTests) || !strings.Contains(err.Error(), "in pkg/bad") {
		t.Errorf("the run ends with %v", err)
	}
	if diff := cmp.Diff(suite.Seconds{"pkg/good": 1.5}, s.seconds()); diff != "" {
		t.Errorf("times of packages that passed: %s", diff)
	}
}

func TestARunPasses(t *testing.T) {
	fakeGo(t, ends)
	s, _ := newTestSession(t)
	if err := s.runAll(t.Context(), plan[1:]); err != nil || s.verdict() != nil {
		t.Errorf("it ends with %v, %v", err, s.verdict())
	}
}

// Children know the commit's seed, and the compiler what it needs for the detector.
func TestWhatChildrenAreGiven(t *testing.T) {
	t.Setenv(long.RotationVariable, "") // this run may have one
	fakeGo(t, `echo "$TRELLIS_ROTATION $CGO_ENABLED"`)
	s, out := newTestSession(t)
	if err := s.call(t.Context(), plan[0]); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "abababab 1\n"; got != want {
		t.Errorf("they have %q, want %q", got, want)
	}
}

// Events are kept as they are, and what is printed is what go test prints without them.
func TestEventsAreKept(t *testing.T) {
	const event = `{"Action":"output","Package":"a","Output":"ok  \ta\t1.50s\n"}`
	fakeGo(t, "[ \"$3\" = -json ] || [ \"$2\" = -json ] || exit 1\necho '"+event+"'")
	s, out := newTestSession(t)
	file := filepath.Join(t.TempDir(), "events.json")
	closed, err := s.keepEvents(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.call(t.Context(), plan[0]), closed()); err != nil || s.failed {
		t.Fatal(err, s.failed)
	}
	text, err := os.ReadFile(file)
	if err != nil || string(text) != event+"\n" || out.String() != "ok  \ta\t1.50s\n" {
		t.Errorf("kept %q, printed %q, %v", text, out, err)
	}
}

// An interrupt ends the call that runs, and no other begins.
func TestAnInterruptEndsTheRun(t *testing.T) {
	fakeGo(t, `echo begun; mkfifo "$PWD/fifo"; exec cat "$PWD/fifo"`)
	s, _ := newTestSession(t)
	ctx, cancel := context.WithCancel(t.Context())
	begun := 0
	s.out = writer(func(string) { begun++; cancel() })
	if err := s.runAll(ctx, plan); !errors.Is(err, context.Canceled) || begun != 1 {
		t.Errorf("it ended with %v after %d calls", err, begun)
	}
}

type writer func(string)

func (w writer) Write(text []byte) (int, error) {
	w(string(text))
	return len(text), nil
}

// listing lets the go command list two packages.
const listing = `if [ "$1" = list ]; then
  [ "$(basename "$PWD")" != apis ] || exit 0
  printf '{"ImportPath":"m/pkg/bad","Dir":"%s/pkg/bad","TestGoFiles":["a_test.go"]}' "$PWD"
  printf '{"ImportPath":"m/pkg/good","Dir":"%s/pkg/good","TestGoFiles":["a_test.go"]}' "$PWD"
  exit 0
fi
`

// long runs what did not pass on this commit, and notes what passed on a clean checkout alone. Red when a part that
// failed, or that ran with changed files or with arguments of its own, is skipped the next time.
func TestPartsAreResumed(t *testing.T) {
	fakeGo(t, listing+ends)
	s, out := newTestSession(t)
	if err := os.Mkdir(filepath.Join(s.checkout, "apis"), 0o755); err != nil {
		t.Fatal(err)
	}
	record := parts.Record{Folder: t.TempDir()}
	chosen := []parts.Part{{Name: "good", Packages: []string{"pkg/good"}}, {Name: "bad", Packages: []string{"pkg/bad"}}}
	clean, dirty, other := s.commit, commit{hash: s.commit.hash, isDirty: true}, commit{hash: strings.Repeat("cd", 20)}
	for _, test := range []struct {
		why           string
		before, after commit
		how           asked
		ran           string
	}{
		{"changed files", dirty, dirty, asked{}, "good bad"},
		{"files that change meanwhile", clean, dirty, asked{}, "good bad"},
		{"a commit meanwhile", clean, other, asked{}, "good bad"},
		{"arguments", clean, clean, asked{arguments: []string{"-x"}}, "good bad"},
		{"the first time", clean, clean, asked{}, "good bad"},
		{"the second time", clean, clean, asked{}, "bad"},
		{"asked for by name", clean, clean, asked{again: true}, "good bad"},
		{"changed files after it passed", dirty, dirty, asked{}, "good bad"},
		{"another commit", other, other, asked{}, "good bad"},
	} {
		s.commit = test.before
		s.look = func(context.Context) commit { return test.after }
		out.Reset()
		s.ended = nil
		err := s.runParts(t.Context(), chosen, record, test.how)
		if !errors.Is(err, errTests) || !strings.Contains(err.Error(), "PART=bad") {
			t.Errorf("%s: %v", test.why, err)
		}
		var ran []string
		for _, one := range s.ended {
			ran = append(ran, strings.TrimPrefix(folderOf(one.Path), "pkg/"))
		}
		if got := strings.Join(ran, " "); got != test.ran {
			t.Errorf("%s: it ran %q, want %q:\n%s", test.why, got, test.ran, out)
		}
	}
	for _, part := range chosen {
		text, err := os.ReadFile(filepath.Join(s.checkout, kept, part.Name+".log"))
		if err != nil || !strings.Contains(string(text), part.Packages[0]) {
			t.Errorf("what part %s printed is kept as %q, %v", part.Name, text, err)
		}
	}
}

// Red when a part that does not end in time, or does not begin, fails the run or runs on, or when one that fails in time is forgiven.
func TestWhatDoesNotEndInTimeFailsNothing(t *testing.T) {
	chosen := []parts.Part{{Name: "first", Packages: []string{"pkg/bad"}}, {Name: "second", Packages: []string{"pkg/bad"}}}
	for _, test := range []struct {
		why, script string
		within      time.Duration
		want        error
	}{
		{"both hang", `mkfifo "$PWD/fifo"; exec cat "$PWD/fifo"`, time.Second, nil},
		{"no time was left", ends, -time.Second, nil},
		{"both fail in time", ends, time.Hour, errTests},
	} {
		fakeGo(t, listing+test.script)
		s, out := newTestSession(t)
		if err := os.Mkdir(filepath.Join(s.checkout, "apis"), 0o755); err != nil {
			t.Fatal(err)
		}
		err := s.runParts(t.Context(), chosen, parts.Record{Folder: t.TempDir()}, asked{within: test.within})
		if isReported := strings.Contains(out.String(), "PART=first,second"); !errors.Is(err, test.want) || isReported != (test.want == nil) {
			t.Errorf("%s: %v\n%s", test.why, err, out)
		}
	}
}

func TestPartsOrATenthAreChosen(t *testing.T) {
	t.Setenv(long.RotationVariable, "") // this run may have one
	s, _ := newTestSession(t)
	number := parts.TenthOf(s.commit.hash)
	for _, test := range []struct {
		name, tenth string
		want        []parts.Part
	}{
		{"", "", parts.Parts()},
		{"", "3", parts.Tenths(parts.Parts())[3]},
		{"", "commit", parts.Tenths(parts.Parts())[number]},
		{"soak", "3", nil},
		{"", "10", nil},
		{"", "-1", nil},
		{"", "x", nil},
	} {
		got, err := s.choose(test.name, test.tenth)
		if diff := cmp.Diff(test.want, got); diff != "" || (err == nil) != (test.want != nil) {
			t.Errorf("part %q, tenth %q: %v, %s", test.name, test.tenth, err, diff)
		}
	}
	t.Setenv(long.RotationVariable, "00000007")
	got, err := s.choose("", "commit")
	if diff := cmp.Diff(parts.Tenths(parts.Parts())[7], got); diff != "" || err != nil {
		t.Errorf("with a rotation of its own: %v, %s", err, diff)
	}
}

func TestPartsAreListed(t *testing.T) {
	s, out := newTestSession(t)
	record := parts.Record{Folder: t.TempDir()}
	pass := parts.Pass{Commit: s.commit.hash, When: time.Now(), Took: time.Minute}
	other := parts.Pass{Commit: strings.Repeat("cd", 20), When: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)}
	if err := errors.Join(record.Add("soak", pass), record.Add("kills", other)); err != nil {
		t.Fatal(err)
	}
	if err := s.list(record); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"soak": "passed on this commit in 1m0s", "kills": "passed on cdcdcdcdcdcd, 2026-01-02", "siege": "never passed here",
	} {
		found := false
		for line := range strings.Lines(out.String()) {
			found = found || strings.HasPrefix(line, name+" ") && strings.Contains(line, want)
		}
		if !found {
			t.Errorf("no line says that %s is %q:\n%s", name, want, out)
		}
	}
}

// A clone without origin, and one without a branch main, are compared with what there is.
func TestTheCommitThatIsComparedWith(t *testing.T) {
	folder := t.TempDir()
	run := func(arguments ...string) string {
		t.Helper()
		command := exec.CommandContext(t.Context(), "git", arguments...)
		command.Dir = folder
		command.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_AUTHOR_NAME=a",
			"GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
		output, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", arguments, err, output)
		}
		return strings.TrimSpace(string(output))
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	commitAll := func(message string) string {
		t.Helper()
		run("add", "--all")
		run("commit", "--quiet", "--message", message)
		return run("rev-parse", "HEAD")
	}
	if got := commitOf(t.Context(), folder); got.hash != "" || got.rotation() != "00000000" || !got.isDirty {
		t.Errorf("a folder without history has %+v", got)
	}
	run("init", "--quiet", "--initial-branch", "trunk")
	write("kept.go", "1")
	write("gone.go", "1")
	first := commitAll("one")
	expect := func(asked, want string) {
		t.Helper()
		if got, err := base(t.Context(), folder, asked); got != want || err != nil {
			t.Errorf("asked for %q it is %s, %v; want %s", asked, got, err, want)
		}
	}
	expect("", first)
	run("branch", "main")
	write("new.go", "1")
	second := commitAll("two")
	expect("", first)
	expect("HEAD", second)
	run("update-ref", "refs/remotes/origin/main", second)
	expect("", second)
	if _, err := base(t.Context(), folder, "nothing"); err == nil || !strings.Contains(err.Error(), "BASE") {
		t.Errorf("a name that is no commit's: %v", err)
	}
	if got := commitOf(t.Context(), folder); got.hash != second || got.isDirty || got.rotation() != second[:8] {
		t.Errorf("a clean checkout is %+v", got)
	}
	write("with space.go", "1")
	write("kept.go", "2")
	if err := os.Remove(filepath.Join(folder, "gone.go")); err != nil {
		t.Fatal(err)
	}
	files, err := changedSince(t.Context(), folder, first)
	if diff := cmp.Diff([]string{"gone.go", "kept.go", "new.go", "with space.go"}, files); diff != "" || err != nil {
		t.Errorf("changed files: %s, %v", diff, err)
	}
	if got := commitOf(t.Context(), folder); !got.isDirty {
		t.Error("changed files are not seen")
	}
}

// What will run is said before it does, with what is left out.
func TestACheckSaysWhatItRuns(t *testing.T) {
	tested := func(folder string) suite.Package {
		return suite.Package{Path: folder, Folder: folder, TestFiles: []string{"a_test.go"}}
	}
	made := change.Plan{
		Changed:   []suite.Package{tested("pkg/a")},
		Importing: []suite.Package{tested("pkg/b")},
		LeftOut:   []suite.Package{tested("pkg/c")},
		Notes:     []string{"do this"},
	}
	want := `note:       do this
laws:       test/laws, which hold in all packages
changed:    pkg/a
importing:  pkg/b
left out:   pkg/c imports what changed, and takes long: go run ./hack/tests ./pkg/c
`
	if diff := cmp.Diff(want, explain(made)); diff != "" {
		t.Error(diff)
	}
	var got []string
	for _, call := range checkCalls(made, map[string]suite.Race{"pkg/a": {Concurrent: true}, "pkg/b": {Concurrent: true}}, nil) {
		got = append(got, strings.Join(call.Command(), " "))
	}
	short := " -short -p=3 -timeout=40m0s "
	calls := []string{
		"go test -vet=off ./test/laws", "go test -vet=off -race" + short + "./pkg/a", "go test -vet=off" + short + "./pkg/b",
	}
	if diff := cmp.Diff(calls, got); diff != "" {
		t.Error(diff)
	}
}

// A file that is not formatted, or a package that vet refuses, ends a check before tests run.
func TestACheckEndsAtWhatIsWrong(t *testing.T) {
	for _, test := range []struct{ why, text, vet, want string }{
		{"not formatted", "package a\nvar  a = 1\n", "exit 0", "not gofmt-ed:\na.go\n"},
		{"refused by vet", "package a\n", "echo 'a.go: no'; exit 1", "a.go: no\n"},
	} {
		fakeGo(t, "[ $1 = vet ] || exit 3\n"+test.vet)
		s, out := newTestSession(t)
		if err := os.WriteFile(filepath.Join(s.checkout, "a.go"), []byte(test.text), 0o600); err != nil {
			t.Fatal(err)
		}
		made := change.Plan{Format: []string{"a.go"}, Vet: []suite.Package{{Path: "m/a", Folder: "a"}}}
		err := s.runCheck(t.Context(), made, plan)
		if err == nil || out.String() != test.want {
			t.Errorf("%s: %v, and it said %q", test.why, err, out)
		}
	}
}

func TestNamesAreComparedByCommand(t *testing.T) {
	folder := t.TempDir()
	file := func(name, text string) string {
		t.Helper()
		written := filepath.Join(folder, name)
		if err := os.WriteFile(written, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return written
	}
	events := file("events.json", `{"Action":"pass","Package":"`+suite.Module+`/pkg/a","Test":"TestA"}`+"\n")
	var out strings.Builder
	if err := printNames(&out, []string{events}); err != nil || out.String() != "pkg/a TestA\n" {
		t.Errorf("the names are %q, %v", out.String(), err)
	}
	before, after := file("before.txt", "pkg/a TestA\npkg/a TestB\n"), file("after.txt", "pkg/a TestC\n")
	renames := file("renames.txt", "pkg/a TestA -> pkg/a TestC\n")
	out.Reset()
	err := compareNames(&out, before, after, renames)
	if err == nil || !strings.Contains(out.String(), "missing: pkg/a TestB\n2 names before, 1 after") {
		t.Errorf("a name that is missing: %v\n%s", err, out.String())
	}
	if err := compareNames(&out, after, after, ""); err != nil {
		t.Errorf("the same names: %v", err)
	}
	if err := printNames(&out, nil); err == nil {
		t.Error("no file gives no names, and no error")
	}
}

// The file of renames can be read.
func TestTheRenamesOfThisCheckout(t *testing.T) {
	text, err := os.ReadFile("renames.txt")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := results.ParseRenames(string(text)); err != nil {
		t.Error(err)
	}
}

// CONTRIBUTING.md says of each part what it is for. Red when one is left out.
func TestPartsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	words := regexp.MustCompile("`([a-z*-]+)`").FindAllStringSubmatch(string(text), -1)
	for _, part := range parts.Parts() {
		named := func(word []string) bool {
			matches, err := path.Match(word[1], part.Name)
			return matches && err == nil
		}
		if !slices.ContainsFunc(words, named) {
			t.Errorf("CONTRIBUTING.md does not name part %s", part.Name)
		}
	}
}
