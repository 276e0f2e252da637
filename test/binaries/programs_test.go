package binaries

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestReleasesAreThoseOfTheModules holds the releases named here, which key the cache, against what would be built.
func TestReleasesAreThoseOfTheModules(t *testing.T) {
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range Programs() {
		t.Run(program.Name+" "+program.Release, func(t *testing.T) {
			content, err := os.ReadFile(filepath.Join(root, "hack", "controlplanes", program.Module, "go.mod"))
			if err != nil {
				t.Fatal(err)
			}
			required := regexp.MustCompile(`(?m)^\s*(?:require )?` + regexp.QuoteMeta(program.Upstream) + ` v(\S+)`)
			found := required.FindSubmatch(content)
			if found == nil || string(found[1]) != program.Release {
				t.Errorf("go.mod requires %q of %s, the list says %s", found, program.Upstream, program.Release)
			}
		})
	}
}

// TestLinkFlags holds that the flags are the same every time, since Go builds again when they differ, and carry the
// version, since an API server without it would answer that it is no release.
func TestLinkFlags(t *testing.T) {
	program := kubernetes("kube-apiserver", OlderMinor, "kubernetes-1.36", Older)
	const stamp = "-X k8s.io/component-base/version.gitVersion=v" + Older
	first := program.linkFlags()
	if !strings.Contains(first, stamp) {
		t.Errorf("flags %q lack %q", first, stamp)
	}
	for range 50 {
		if again := program.linkFlags(); again != first {
			t.Fatalf("flags differ: %q and %q", first, again)
		}
	}
}

// TestHelmKnowsItsVersion runs the helm that is built. Red when it says v3.22 without a patch level, or takes Kubernetes for 1.20, as an
// unstamped one does: our own charts ask for more.
func TestHelmKnowsItsVersion(t *testing.T) {
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	cache, err := Cache()
	if err != nil {
		t.Fatal(err)
	}
	helm, err := Find(cache, "helm", "")
	if err != nil {
		t.Fatal(err)
	}
	run := func(arguments ...string) string {
		t.Helper()
		command := exec.CommandContext(t.Context(), helm, arguments...)
		command.Env = []string{"HOME=" + t.TempDir()}
		output, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("helm %v: %v\n%s", arguments, err, output)
		}
		return string(output)
	}
	if said := run("version", "--template", "{{.Version}} {{.GitTreeState}}"); said != "v"+helmRelease+" clean" {
		t.Errorf("helm version says %q", said)
	}
	run("template", filepath.Join(root, "charts", "trellis-seed"))
	module, err := os.ReadFile(filepath.Join(root, "hack", "controlplanes", newerModule, "go.mod"))
	if err != nil || !strings.Contains(string(module), "k8s.io/client-go => k8s.io/client-go v0."+helmKubernetes+".") {
		t.Errorf("helm is not made with Kubernetes 1.%s: %v", helmKubernetes, err)
	}
}

// TestBuildIsDoneOnce holds that Build leaves alone what the cache has, that only what is asked for is built, and that Find
// says what to do about the rest.
func TestBuildIsDoneOnce(t *testing.T) {
	cache := t.TempDir()
	if _, err := Find(cache, "kube-apiserver", Older); err == nil || !strings.Contains(err.Error(), "make binaries NEED=older") {
		t.Errorf("a missing program gives %v, want how to build it", err)
	}
	for _, program := range Programs() {
		if program.Need == Base {
			place(t, cache, program)
		}
	}
	var progress bytes.Buffer
	builder := Builder{Root: "no checkout", Cache: cache, Out: &progress}
	if err := builder.Build(t.Context(), Base); err != nil || progress.Len() > 0 {
		t.Fatalf("built again: %v\n%s", err, progress.String())
	}
	for release, want := range map[string]string{"": Newer, Newer: Newer} {
		found, err := Find(cache, "kube-apiserver", release)
		if err != nil || !strings.Contains(found, want) {
			t.Errorf("kube-apiserver %q is found at %q, %v", release, found, err)
		}
	}
	if _, err := Find(cache, "kube-apiserver", Older); err == nil {
		t.Error("a release that is not built was found")
	}
	if _, err := Find(cache, "kube-apiserver", "1.0.0"); err == nil {
		t.Error("a release that is not in the list was found")
	}
}

// place makes a file that Find takes for the built program.
func place(t *testing.T, cache string, program Program) string {
	t.Helper()
	path, err := program.Path(cache)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o755)); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestAProgramIsBuiltAgainWhenWhatItIsMadeFromChanges compares places in the cache. Red when programs of other versions, of
// another edit or with other flags share a place, or when those of two checkouts do not.
func TestAProgramIsBuiltAgainWhenWhatItIsMadeFromChanges(t *testing.T) {
	placeOf := func(change func(*Program)) string {
		t.Helper()
		program := clusterAPI()
		change(&program)
		path, err := program.Path("cache")
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	same := placeOf(func(*Program) {})
	if again := placeOf(func(*Program) {}); again != same {
		t.Errorf("one program has two places: %q and %q", same, again)
	}
	for why, change := range map[string]func(*Program){
		"another release is stamped": func(p *Program) { p.Release = "1.14.3" },
		"another edit":               func(p *Program) { p.Edit.New = "" },
		"other versions":             func(p *Program) { p.Module = newerModule },
	} {
		if other := placeOf(change); other == same {
			t.Errorf("%s: it has the place of the former program, %q", why, other)
		}
	}
}

// TestUnusedProgramsGo: red when a program that nothing used for a month stays, or when one that is in use goes.
func TestUnusedProgramsGo(t *testing.T) {
	cache := t.TempDir()
	var used []Program
	for _, program := range Programs() {
		old := time.Now().Add(-2 * unusedFor)
		folder := filepath.Dir(place(t, cache, program))
		if err := os.Chtimes(folder, old, old); err != nil {
			t.Fatal(err)
		}
		if program.Need == Base {
			used = append(used, program)
		}
	}
	if err := (Builder{Cache: cache, Out: io.Discard}).Build(t.Context(), Base); err != nil {
		t.Fatal(err)
	}
	for _, program := range Programs() {
		_, err := program.existing(cache)
		if kept := err == nil; kept != (program.Need == Base) {
			t.Errorf("%s %s is kept: %v", program.Name, program.Release, kept)
		}
	}
	if len(used) == 0 {
		t.Error("no program was used")
	}
}
