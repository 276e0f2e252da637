package docs

import (
	"context"
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trellis-addons/trellis/hack/docs/markdown"
	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/long"
	"github.com/trellis-addons/trellis/test/sandbox"
)

var (
	running = flag.String("sandbox", "", "folder of a sandbox that runs, in place of one of the test's own")
	only    = flag.String("page", "", "part of the name of the pages that run; empty: all")
)

// TestMain lets pages wait at once however few processors there are: they wait most of the time.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// alone are pages that would disturb others: a set that installs in every cluster, and an API server that is killed. They come one
// after the other, when all others are done.
var alone = []string{"docs/guides/who-installs.md", "deploy/sandbox/README.md"}

// first are the pages that a newcomer reads: every commit runs them.
var first = []string{"README.md", "docs/guides/quick-start.md", "deploy/standalone/README.md"}

// others are pages for a sandbox of another kind, by whose Clusters it has. They come last, when the first sandbox is gone.
var others = map[string]string{"docs/guides/cluster-api.md": sandbox.ClusterAPI}

// pages lists the pages for users, and the checkout that they are in.
func pages(t *testing.T) (root string, names []string) {
	t.Helper()
	root, err := binaries.Root()
	if err != nil {
		t.Fatal(err)
	}
	names = []string{"README.md", "CONTRIBUTING.md"}
	for _, pattern := range []string{"deploy/*/README.md", "docs/guides/*.md", "docs/spec/*.md"} {
		found, err := fs.Glob(os.DirFS(root), pattern)
		if err != nil || len(found) < 2 {
			t.Fatalf("the pages are not where they were: %v, %v", found, err)
		}
		names = append(names, found...)
	}
	return root, names
}

func read(t *testing.T, root, name string) *markdown.Page {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return markdown.Read(source)
}

func TestEveryBlockOfAPageSaysWhatItIs(t *testing.T) {
	root, names := pages(t)
	for _, name := range names {
		for _, complaint := range complaints(name, read(t, root, name)) {
			t.Error(complaint)
		}
	}
}

func TestEveryCommandOfAPageRuns(t *testing.T) {
	t.Parallel() // with the blocks that run on no sandbox
	root, names := pages(t)
	v := visitors{root: root}
	wanted := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return !strings.Contains(name, *only) || !slices.ContainsFunc(read(t, root, name).Blocks, isCommand)
	})
	if len(wanted) < 8 && *only == "" {
		t.Errorf("only %d pages have commands: this test reads the wrong files", len(wanted))
	}
	for _, clusters := range []string{"", sandbox.ClusterAPI} {
		those := slices.DeleteFunc(slices.Clone(wanted), func(name string) bool { return others[name] != clusters })
		if len(those) > 0 {
			t.Run("with Clusters "+clusters, func(t *testing.T) {
				if clusters != "" {
					long.Skip(t, "docs", "it takes a second sandbox")
				}
				v.folder = start(t, clusters)
				v.all(t, those)
			})
		}
	}
}

// start is the folder of a sandbox, which goes with the test; with a flag, of one that runs.
func start(t *testing.T, clusters string) string {
	t.Helper()
	if *running != "" {
		return *running
	}
	folder := filepath.Join(t.TempDir(), "sandbox")
	options := sandbox.Options{Folder: folder, Clusters: clusters, Web: true, Progress: fleet.NewProgress(t.Output())}
	box, err := sandbox.Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(box.Stop)
	return folder
}

// visitors run pages of a checkout on a sandbox.
type visitors struct{ root, folder string }

// all runs these pages, at once if they may.
func (v visitors) all(t *testing.T, names []string) {
	t.Helper()
	visited := func(t *testing.T, name string) {
		t.Helper()
		if !slices.Contains(first, name) {
			long.Turn(t, "docs", 3)
		}
		run(t, visit(t, v.root, v.folder), script(name, read(t, v.root, name)))
	}
	t.Run("at once", func(t *testing.T) {
		for _, name := range names {
			if !slices.Contains(alone, name) {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					visited(t, name)
				})
			}
		}
	})
	for _, name := range alone {
		if slices.Contains(names, name) {
			t.Run(name, func(t *testing.T) { visited(t, name) })
		}
	}
}

// visit makes a folder in which a page finds what a checkout has where a sandbox runs.
func visit(t *testing.T, root, folder string) string {
	t.Helper()
	folder, err := filepath.Abs(folder)
	if err != nil {
		t.Fatal(err)
	}
	place := t.TempDir()
	for from, to := range map[string]string{
		folder: ".sandbox", filepath.Join(root, "deploy"): "deploy", filepath.Join(root, "charts"): "charts",
	} {
		if err := os.Symlink(from, filepath.Join(place, to)); err != nil {
			t.Fatal(err)
		}
	}
	return place
}

// run runs the commands in a folder, with further variables, as KEY=value.
func run(t *testing.T, place, commands string, variables ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	shell := exec.CommandContext(ctx, "bash", "-c", commands)
	shell.Dir = place
	shell.WaitDelay = 5 * time.Second
	shell.Env = append(slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "KUBECONFIG=") || strings.HasPrefix(variable, "HELM_") || strings.HasPrefix(variable, "XDG_")
	}), "HOME="+t.TempDir(), "GIT_CONFIG_NOSYSTEM=1") // git knows no identity, as on a new machine
	shell.Env = append(shell.Env, variables...)
	begin := time.Now()
	output, err := shell.CombinedOutput()
	t.Logf("%.1f s", time.Since(begin).Seconds())
	if *only != "" {
		t.Logf("%s", output)
	}
	if err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}

func TestScriptsOfPages(t *testing.T) {
	page := markdown.Read([]byte("# Page\n\n```sh\nls\n```\n\ntext\n\n```sh refused\nfalse\n```\n\n<!-- no cluster -->\n```console\nrm\n```\n\n" +
		"```yaml\na: b\n```\n"))
	want := "set -euo pipefail\nprintf '\\n--- x.md:4\\n'\nls\n\nprintf '\\n--- x.md:10\\n'\nif false\n" +
		"then echo 'this has to be refused, and was not'; exit 1; fi\n"
	if diff := cmp.Diff(want, script("x.md", page)); diff != "" {
		t.Errorf("script (-want +got):\n%s", diff)
	}
	if found := complaints("x.md", page); len(found) > 0 {
		t.Errorf("complains about right blocks: %q", found)
	}
	for why, text := range map[string]string{
		"without a fence": "# P\n\n    ls\n", "more than one": "```sh refused\nls\npwd\n```\n", "say why": "```console\nls\n```\n",
		`with "bash" after its fence`: "```bash\nls\n```\n", `with "" after`: "```\nls\n```\n",
	} {
		if found := complaints("x.md", markdown.Read([]byte(text))); len(found) != 1 || !strings.Contains(found[0], why) {
			t.Errorf("of %q is said %q, expected one complaint with %q", text, found, why)
		}
	}
}

func TestAFailedCommandFailsItsPage(t *testing.T) {
	for why, text := range map[string]string{
		"a command that fails": "```sh\nfalse\ntrue\n```\n", "in a pipe": "```sh\nfalse | cat\n```\n",
		"a refusal that did not come": "```sh refused\ntrue\n```\n",
	} {
		command := exec.CommandContext(t.Context(), "bash", "-c", script("x.md", markdown.Read([]byte(text))))
		if output, err := command.CombinedOutput(); err == nil || !strings.Contains(string(output), "--- x.md:") {
			t.Errorf("%s: %v, %s", why, err, output)
		}
	}
}
