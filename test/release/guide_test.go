package release

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trellis-addons/trellis/hack/docs/markdown"
	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/disk"
	"github.com/trellis-addons/trellis/test/fleet"
)

// guide is docs/guides/air-gap.md, with names of this site.
type guide struct {
	page  *markdown.Page
	names *strings.Replacer
	// folder is where its commands run: the release, with the page's files.
	folder string
	// home is their HOME, and programs has kubectl and helm.
	home, programs string
}

// The words of the page that a site replaces.
const (
	registryOfPage = "registry.internal.example.com"
	versionOfPage  = "0.1.0"
)

func readGuide(t *testing.T, registry, folder string) guide {
	t.Helper()
	root, err := binaries.Root()
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(filepath.Join(root, "docs", "guides", "air-gap.md"))
	if err != nil {
		t.Fatal(err)
	}
	made := guide{
		page: markdown.Read(source), names: strings.NewReplacer(registryOfPage, registry, versionOfPage, filepath.Base(folder)),
		folder: folder, home: disk.TempDir(t), programs: t.TempDir(),
	}
	cache, err := binaries.Cache()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"helm", "kubectl"} {
		path, err := binaries.Find(cache, name, "")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(made.programs, name)); err != nil {
			t.Fatal(err)
		}
	}
	return made
}

// writeFiles writes the page's files, which begin with a comment that names them.
func (g guide) writeFiles(t *testing.T) {
	t.Helper()
	written := 0
	for _, block := range g.page.Blocks {
		first, _, _ := strings.Cut(block.Text, "\n")
		name, isFile := strings.CutPrefix(first, "# ")
		if block.Info != "yaml" || !isFile || !strings.HasSuffix(name, ".yaml") {
			continue
		}
		written++
		if err := os.WriteFile(filepath.Join(g.folder, name), []byte(g.names.Replace(block.Text)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if written != 2 {
		t.Fatalf("the page has %d files, want the values of both charts", written)
	}
}

// commands are those of the block that begins with a text, each whole.
func (g guide) commands(t *testing.T, begins string) (found []string) {
	t.Helper()
	for _, block := range g.page.Blocks {
		if block.Info == "console" && strings.HasPrefix(block.Text, begins) {
			return strings.Split(strings.TrimSpace(strings.ReplaceAll(block.Text, "\\\n", "")), "\n")
		}
	}
	t.Fatalf("the page has no block that begins with %q", begins)
	return nil
}

// run runs a command of the page against an API server.
func (g guide) run(t *testing.T, where, line string) string {
	t.Helper()
	kubeconfig := filepath.Join(g.home, where)
	if err := os.WriteFile(kubeconfig, fleet.Shared().Cluster(where).Kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", g.names.Replace(line))
	command.Dir = g.folder
	command.Env = []string{
		"HOME=" + g.home, "KUBECONFIG=" + kubeconfig, "PASSWORD=" + password, fmt.Sprintf("PATH=%s:/usr/bin:/bin", g.programs),
	}
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("on %s: %s: %v\n%s", where, line, err, output)
	}
	return string(output)
}
