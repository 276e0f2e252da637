package chart_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/trellis-addons/trellis/test/binaries"
)

// templated is what the helm program prints for a chart.
func templated(t *testing.T, content fstest.MapFS, flags ...string) string {
	t.Helper()
	cache, err := binaries.Cache()
	if err != nil {
		t.Fatal(err)
	}
	program, err := binaries.Find(cache, "helm", "")
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "demo")
	if err := os.CopyFS(folder, content); err != nil {
		t.Fatal(err)
	}
	arguments := []string{"template", "my-release", folder, "--namespace", "my-namespace", "--kube-version", "v1.36.3"}
	command := exec.CommandContext(t.Context(), program, append(arguments, flags...)...)
	command.Env = []string{"HOME=" + t.TempDir()}
	var problem bytes.Buffer
	command.Stderr = &problem
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, problem.String())
	}
	return string(output)
}

// decoded are the objects of a text as Helm's client reads them, by kind and name.
func decoded(t *testing.T, text string) map[string]any {
	t.Helper()
	found := map[string]any{}
	for decoder := yaml.NewYAMLToJSONDecoder(bytes.NewBufferString(text)); ; {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(object.Object) > 0 {
			found[object.GetKind()+"/"+object.GetName()] = object.Object
		}
	}
}

// ends are ways in which a block scalar can end a document, a template or a file.
func ends() fstest.MapFS {
	data := func(name, text string) string { return configMap + name + "\ndata:\n  text: " + text }
	return folder(
		"templates/clip.yaml", data("clip", "|\n    a\n    b\n"),
		"templates/open.yaml", data("open", "|\n    a\n    b"),
		"templates/strip.yaml", data("strip", "|-\n    a\n    b\n"),
		"templates/keep.yaml", data("keep", "|+\n    a\n    b\n\n\n"),
		"templates/fold.yaml", data("fold", ">\n    a\n    b\n"),
		"templates/blank.yaml", data("blank", "|\n    a\n\n    \n"),
		"templates/plain.yaml", data("plain", "a\n"),
		"templates/comment.yaml", data("comment", "|\n    a\n# the end\n"),
		"templates/several.yaml", data("one", "|\n    a\n")+"---\n"+data("two", "|\n    a\n\n")+"--- # three\n"+data("three", "|\n    a"),
		"templates/windows.yaml", data("windows", "|\r\n    a\r\n    b\r\n"),
		"templates/file.yaml", data("file", `|
{{ .Files.Get "text.txt" | indent 4 }}`), "text.txt", "a\nb\n",
		"templates/nindent.yaml", data("nindent", `|-{{ "a\nb\n" | nindent 4 }}`),
		"templates/number.yaml", configMap+"number\n  annotations: {a: \"1e3\", b: \"0x1F\", c: \"yes\"}\ndata: {float: \"1.0\"}\n",
		"templates/hook.yaml", configMap+"hook\n  annotations: {helm.sh/hook: pre-install}\ndata:\n  text: |\n    a\n",
		"crds/a.yaml", "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: as.example.com\nspec: |\n  a",
	)
}

// Red when a manifest or an object differs from the helm program's in a byte: a block scalar lost
// its newline at the end of a document.
func TestBytesAsHelm(t *testing.T) {
	content := ends()
	result := mustRender(t, content, nil)
	if diff := cmp.Diff(templated(t, content, "--no-hooks"), result.Chart.Manifest); diff != "" {
		t.Errorf("the manifest (-want +got):\n%s", diff)
	}
	have := map[string]any{}
	for _, object := range result.Objects {
		have[object.GetKind()+"/"+object.GetName()] = object.Object
	}
	for _, hook := range result.Chart.Hooks {
		have[hook.Object.GetKind()+"/"+hook.Object.GetName()] = hook.Object.Object
	}
	if diff := cmp.Diff(decoded(t, templated(t, content, "--include-crds")), have); diff != "" {
		t.Errorf("the objects (-want +got):\n%s", diff)
	}
}
