package binaries

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
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

// TestLinkFlags holds that the flags are the same every time, since Go builds anew when they differ, and carry the
// version, since an API server without it would answer that it is no release.
func TestLinkFlags(t *testing.T) {
	program := kubernetes("kube-apiserver", Older)
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
	module, err := os.ReadFile(filepath.Join(root, "hack", "controlplanes", "helm", "go.mod"))
	if err != nil || !strings.Contains(string(module), "k8s.io/client-go v0."+helmKubernetes+".") {
		t.Errorf("helm is not made with Kubernetes 1.%s: %v", helmKubernetes, err)
	}
}

// TestBuildIsDoneOnce holds that Build leaves alone what the cache has, and that Find says what to do about the rest.
func TestBuildIsDoneOnce(t *testing.T) {
	cache := t.TempDir()
	if _, err := Find(cache, "etcd", ""); err == nil || !strings.Contains(err.Error(), "make binaries") {
		t.Errorf("a missing program gives %v, want how to build it", err)
	}
	listed := 0
	for _, program := range Programs() {
		if !program.OnDemand {
			listed++
		}
		path := program.Path(cache)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(program.Release), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var progress bytes.Buffer
	if err := Build(context.Background(), "no checkout", cache, &progress); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(progress.String(), "built before"); got != listed {
		t.Errorf("%d of %d programs were found built:\n%s", got, listed, progress.String())
	}
	if strings.Contains(progress.String(), Oldest) || strings.Contains(progress.String(), "clusterctl") {
		t.Errorf("what is built on demand only is in the list:\n%s", progress.String())
	}
	provided, err := Provide(t.Context(), cache, "kube-apiserver", Oldest)
	if err != nil || !strings.Contains(provided, Oldest) {
		t.Errorf("what is built already is provided as %q, %v", provided, err)
	}
	newer, err := Find(cache, "kube-apiserver", Newer)
	if err != nil || !strings.Contains(newer, Newer) {
		t.Errorf("kube-apiserver %s is found at %q, %v", Newer, newer, err)
	}
	if _, err := Find(cache, "kube-apiserver", "1.0.0"); err == nil {
		t.Error("a release that is not built was found")
	}
}
