package charts

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
)

// upgraded is an API server that has nothing yet.
const upgraded = "upgraded"

// theCommand is the command of the guide that upgrades CRDs.
var theCommand = regexp.MustCompile(`(?m)^ *kubectl (?:--kubeconfig \S+ )?(apply .*) -f charts/trellis-seed/crds`)

// TestCRDsAreUpgradedAsTheGuideSays: Helm installs a chart, the next one has other CRDs, and the guide's command applies them.
// Red when the command is refused since Helm owns the fields, and when it changes nothing.
func TestCRDsAreUpgradedAsTheGuideSays(t *testing.T) {
	root, err := binaries.Root()
	expect.NoError(t, err)
	chart := filepath.Join(root, "charts", "trellis-seed")
	runProgram(t, "helm", "install", "seed", chart, "--namespace", "kubermatic", "--create-namespace", "--no-hooks")
	defer mustHelm(t, fleet.Shared().Cluster(upgraded), "uninstall", "seed", "--no-hooks")
	guide, err := os.ReadFile(filepath.Join(root, "docs", "guides", "upgrade.md"))
	expect.NoError(t, err)
	command := theCommand.FindSubmatch(guide)
	if command == nil {
		t.Fatal("docs/guides/upgrade.md does not say how to upgrade CRDs: this test expects a line that applies charts/trellis-seed/crds")
	}
	next := t.TempDir()
	changeCRDs(t, filepath.Join(chart, "crds"), next)
	runProgram(t, "kubectl", append(strings.Fields(string(command[1])), "-f", next)...)

	var found apiextensionsv1.CustomResourceDefinitionList
	expect.List(t, crdClient(t), &found)
	if len(found.Items) == 0 {
		t.Error("there are no CRDs")
	}
	for i := range found.Items {
		columns := found.Items[i].Spec.Versions[0].AdditionalPrinterColumns
		if len(columns) == 0 || columns[0].Name != "Next" {
			t.Errorf("CRD %s has the columns %+v", found.Items[i].Name, columns)
		}
	}
}

func crdClient(t *testing.T) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	expect.NoError(t, apiextensionsv1.AddToScheme(scheme))
	c, err := client.New(fleet.Shared().Cluster(upgraded).Config, client.Options{Scheme: scheme})
	expect.NoError(t, err)
	return c
}

// changeCRDs copies a folder of CRDs, each with one more column.
func changeCRDs(t *testing.T, from, to string) {
	t.Helper()
	files, err := os.ReadDir(from)
	expect.NoError(t, err)
	for _, file := range files {
		content, err := os.ReadFile(filepath.Join(from, file.Name()))
		expect.NoError(t, err)
		const columns = "  - additionalPrinterColumns:\n"
		changed := bytes.Replace(content, []byte(columns), []byte(columns+"    - {name: Next, type: string, jsonPath: .metadata.name}\n"), 1)
		if bytes.Equal(content, changed) {
			t.Fatalf("%s has no columns", file.Name())
		}
		expect.NoError(t, os.WriteFile(filepath.Join(to, file.Name()), changed, 0o600))
	}
}

func programOfOthers(t *testing.T, name string) string {
	t.Helper()
	cache, err := binaries.Cache()
	expect.NoError(t, err)
	path, err := binaries.Find(cache, name, "")
	expect.NoError(t, err)
	return path
}

// runProgram runs a program of somebody against the API server, and gives what it told.
func runProgram(t *testing.T, name string, arguments ...string) string {
	t.Helper()
	home := t.TempDir()
	kubeconfig := filepath.Join(home, "kubeconfig")
	expect.NoError(t, os.WriteFile(kubeconfig, fleet.Shared().Cluster(upgraded).Kubeconfig, 0o600))
	command := exec.CommandContext(t.Context(), programOfOthers(t, name), arguments...)
	command.Env = []string{"HOME=" + home, "KUBECONFIG=" + kubeconfig}
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(arguments, " "), err, output)
	}
	return string(output)
}
