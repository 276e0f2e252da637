package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/hack/docs/markdown"
	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/charts"
	"github.com/trellis-addons/trellis/test/clusterapi"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/long"
	"github.com/trellis-addons/trellis/test/pod"
)

// Red when a page gets a block that no test tries, when one of the list is gone or could be another, and when one is tried in a lesser way
// without a reason, or with a reason for what is not lesser.
func TestEveryOtherBlockIsTriedElsewhere(t *testing.T) {
	root, names := pages(t)
	counted, found := map[way]int{}, map[string]int{}
	for _, name := range names {
		for _, block := range read(t, root, name).Blocks {
			if isCommand(block) {
				counted["on a sandbox"]++
				continue
			}
			entries := of(name, block)
			if block.Info == shown && len(entries) != 1 {
				t.Errorf("%s:%d: blocks.go has this block %d times: have it run on the sandbox (sh), or say there how it is tried",
					name, block.Line, len(entries))
			}
			for _, e := range entries {
				counted[e.way]++
				found[e.page+"\n"+e.begins]++
			}
		}
	}
	for _, e := range blocks {
		if found[e.page+"\n"+e.begins] != 1 {
			t.Errorf("%d blocks of %s begin with %q, expected one", found[e.page+"\n"+e.begins], e.page, e.begins)
		}
		if isLesser := slices.Contains(lesser, e.way); isLesser != (e.why != "") {
			t.Errorf("%s: %q is tried %s, and the reason is %q", e.page, e.begins, e.way, e.why)
		}
	}
	t.Logf("blocks of commands by how they are tried: %v", counted)
}

// The blocks that take no cluster are tried in the checkout, and in a module of its own. Red when a target or the folder of its program is
// gone, when a flag that a target gives is none of the program's, and when the kinds can't be got and imported as README says.
func TestBlocksThatTakeNoCluster(t *testing.T) {
	root, names := pages(t)
	for _, name := range names {
		if isTried(name, planned) && strings.Contains(name, *only) {
			t.Run(name, func(t *testing.T) {
				run(t, root, scriptOf(name, read(t, root, name), planned), goVariables(t)...)
			})
		}
		if isTried(name, module) && strings.Contains(name, *only) {
			t.Run(name+" as a module", func(t *testing.T) {
				place, page := t.TempDir(), read(t, root, name)
				write(t, place, files(page))
				offline := []string{"CHECKOUT=" + root, "GOFLAGS=-mod=mod", "GOPROXY=off", "GOSUMDB=off"}
				run(t, place, scriptOf(name, page, module), append(goVariables(t), offline...)...)
			})
		}
	}
}

// goVariables have Go find what this test was built from, in another home.
func goVariables(t *testing.T) []string {
	t.Helper()
	var variables []string
	for _, name := range []string{"GOMODCACHE", "GOCACHE"} {
		value, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		variables = append(variables, name+"="+strings.TrimSpace(string(value)))
	}
	return variables
}

// cleaned follows each page on the bare API server: the next one finds no releases and no installations.
const cleaned = `
clean() {
  kubectl delete addoninstallations --all --all-namespaces --ignore-not-found || true
  helm list --namespace kubermatic --all --short | xargs --no-run-if-empty helm uninstall --no-hooks --namespace kubermatic
}
trap clean EXIT
`

// The blocks that are for a platform of the reader's run on an API server that has nothing but Cluster API's kinds, page after page, with
// Jobs of charts. Red when a command fails, and when it does not do what its entry in the list looks for.
func TestBlocksThatTakeABareServer(t *testing.T) {
	t.Parallel() // with the pages on a sandbox
	root, names := pages(t)
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.Contains(name, *only) || !isTried(name, bare, stub) })
	if len(names) == 0 {
		return
	}
	folder := programs(t, root)
	planes := fleet.ForTest(t, fleet.ClusterOptions{Name: "bare"})
	where := planes.Cluster("bare")
	if err := clusterapi.InstallCRDs(t.Context(), where.Config); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(where.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	node := &pod.Node{Fleet: planes, Cluster: where, Client: c, Folder: t.TempDir(), Enter: filepath.Join(folder, pod.Enter)}
	charts.PlayJobs(t, node, charts.Programs(folder))
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			if !slices.Contains(first, name) {
				long.Turn(t, "docs-elsewhere", 3)
			}
			place, page := visit(t, root, folder), read(t, root, name)
			write(t, place, files(page))
			write(t, place, map[string]string{"kubeconfig": string(where.Kubeconfig)})
			run(t, place, cleaned+scriptOf(name, page, bare, stub), "KUBECONFIG="+filepath.Join(place, "kubeconfig"),
				"CHECKOUT="+root, "PATH="+folder+":"+os.Getenv("PATH"))
		})
	}
}

// programs is a folder with both managers, kubectl and helm.
func programs(t *testing.T, root string) string {
	t.Helper()
	folder := t.TempDir()
	if err := binaries.BuildOwn(t.Context(), root, folder, "./cmd/...", pod.EnterPackage); err != nil {
		t.Fatal(err)
	}
	cache, err := binaries.Cache()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"kubectl", "helm"} {
		path, err := binaries.Find(cache, name, "")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func write(t *testing.T, place string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(place, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// Red when what a page shows as a file is another's, or no file where a block uses it.
func TestFilesOfPages(t *testing.T) {
	page := markdown.Read([]byte("```yaml\n# a.yaml\na: b\n```\n\n```yaml\n# of team/c.yaml\n```\n\n```text\n# d.yaml\n```\n\n" +
		"```go\nimport x\n```\n"))
	want := map[string]string{"a.yaml": "# a.yaml\na: b\n", "imports.txt": "import x\n"}
	if diff := cmp.Diff(want, files(page)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// Red when the words that stand around blocks let pass what they are there to find.
func TestWordsFindWhatIsWrong(t *testing.T) {
	for why, commands := range map[string]string{
		"a text that is missing": "echo one | has two", "what has to be refused": "refused true",
		"another program's flag":     "flags '--one' x --two=3",
		"a target that is not there": "plan nothing",
	} {
		command := exec.CommandContext(t.Context(), "bash", "-c", "set -euo pipefail\n"+words+commands)
		command.Dir, _ = pages(t)
		if output, err := command.CombinedOutput(); err == nil {
			t.Errorf("%s passes: %s", why, output)
		}
	}
}
