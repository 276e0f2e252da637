// Command kustomize writes kustomize bases with the same content as the charts: deploy/kustomize has
// one for each chart, with what the chart renders to by its default values in namespace kubermatic.
// What Helm alone runs (its hooks) is left out: who applies a base applies the CRDs with it.
package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/trellis-addons/trellis/hack/release/chart"
)

// namespace is in policies and arguments, which kustomize's own change of the namespace does not
// reach.
const namespace = "kubermatic"

const head = "# Written by `make generate` from charts/%s.\n"

func main() {
	for _, name := range os.Args[1:] {
		if err := write(filepath.Join("charts", name), filepath.Join("deploy/kustomize", name)); err != nil {
			fmt.Fprintf(os.Stderr, "kustomize: %s: %v\n", name, err)
			os.Exit(1)
		}
	}
}

// write makes the base of a chart's folder anew.
func write(from, to string) error {
	read, err := read(from)
	if err != nil {
		return err
	}
	texts, err := read.Render(namespace, "kustomize", nil)
	if err != nil {
		return err
	}
	objects, err := joined(texts)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(to); err != nil {
		return fmt.Errorf("removing the former base: %w", err)
	}
	if err := os.CopyFS(filepath.Join(to, "crds"), os.DirFS(filepath.Join(from, "crds"))); err != nil {
		return fmt.Errorf("copying the CRDs: %w", err)
	}
	crds, err := fs.Glob(os.DirFS(to), "crds/*.yaml")
	if err != nil {
		return err
	}
	title := fmt.Sprintf(head, read.Name())
	list := title + "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n- " +
		strings.Join(append(crds, "objects.yaml"), "\n- ") + "\n"
	for name, text := range map[string]string{"kustomization.yaml": list, "objects.yaml": title + objects} {
		if err := os.WriteFile(filepath.Join(to, name), []byte(text), 0o644); err != nil {
			return fmt.Errorf("writing the base: %w", err)
		}
	}
	return nil
}

// read reads a chart as it is.
func read(folder string) (chart.Chart, error) {
	var about struct{ Version string }
	var values struct {
		Image struct{ Repository, Digest string }
	}
	for name, into := range map[string]any{"Chart.yaml": &about, "values.yaml": &values} {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			return chart.Chart{}, err
		}
		if err := yaml.Unmarshal(text, into); err != nil {
			return chart.Chart{}, fmt.Errorf("reading %s: %w", name, err)
		}
	}
	return chart.Read(folder, about.Version, chart.Image{Repository: values.Image.Repository, Digest: values.Image.Digest})
}

// joined are all objects but hooks, in their order, as one text.
func joined(texts []string) (string, error) {
	var all strings.Builder
	for _, text := range texts {
		for part := range strings.SplitSeq("\n"+text, "\n---") {
			object := &unstructured.Unstructured{}
			if err := yaml.UnmarshalStrict([]byte(part), &object.Object); err != nil {
				return "", fmt.Errorf("parsing what was rendered: %w", err)
			}
			if _, isHook := object.GetAnnotations()["helm.sh/hook"]; isHook || len(object.Object) == 0 {
				continue
			}
			document, err := yaml.Marshal(object.Object)
			if err != nil {
				return "", fmt.Errorf("writing %s %q: %w", object.GetKind(), object.GetName(), err)
			}
			all.WriteString("---\n" + string(document))
		}
	}
	return all.String(), nil
}
