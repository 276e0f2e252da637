// Package components writes what clusterctl takes of an add-on provider, and CRDs as one file. The
// source of the rules is Cluster API's book, "clusterctl Provider Contract" (v1beta2).
package components

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/trellis-addons/trellis/hack/release/chart"
)

const (
	// Namespace is the one that all of the provider lives in. Its name is in policies and arguments, and
	// clusterctl knows of neither: another one takes the charts.
	Namespace = "kubermatic"
	// contract is the one of Cluster API's whose objects are read.
	contract = "v1beta2"
	// providerLabel with the provider's name, which begins with its type, is on every object.
	providerLabel, provider = "cluster.x-k8s.io/provider", "addon-trellis"
)

// values are the values of each chart, by its name. The master has no KKP, and the seed serves only Clusters of Cluster API. Upgrades of
// clusters are not held: the annotations that hold them would stay after `clusterctl delete`, which has no step before
// the deletion to remove them. The query endpoint is not published: all objects of a provider are in one namespace.
var values = map[string]map[string]any{
	"trellis-master": {"standalone": map[string]any{"enabled": true}},
	"trellis-seed": {
		"clusterAPI": map[string]any{"kinds": []any{"cluster-api"}}, "query": map[string]any{"publish": false},
	},
}

// ErrVariable says that clusterctl would put something in place of a part of the text.
var ErrVariable = errors.New("the components have ${ or $$, which clusterctl takes for a variable")

// Provider is the components YAML: one namespace, the CRDs of the charts and those below a folder
// of KKP's kinds, which a management cluster has nobody else to bring, and what the charts render to,
// each with its values, for a management cluster that is master and seed, without what Helm alone runs.
func Provider(charts []chart.Chart, kkp string) (string, error) {
	crds, err := Joined(kkp)
	if err != nil {
		return "", err
	}
	texts := []string{crds}
	for _, one := range charts {
		texts = append(texts, one.CRDs()...)
	}
	for _, one := range charts {
		own, found := values[one.Name()]
		if !found {
			return "", fmt.Errorf("nothing says which values chart %q has here", one.Name())
		}
		rendered, err := one.Render(Namespace, "clusterctl", own)
		if err != nil {
			return "", err
		}
		texts = append(texts, rendered...)
	}
	objects := []*unstructured.Unstructured{namespace()}
	for _, text := range texts {
		found, err := documents(text)
		if err != nil {
			return "", err
		}
		objects = append(objects, found...)
	}
	objects = slices.DeleteFunc(objects, isHook)
	if err := canonical(objects); err != nil {
		return "", fmt.Errorf("naming the images: %w", err)
	}
	return write(objects)
}

// isHook says that an object is for Helm alone: clusterctl brings CRDs up to date by itself.
func isHook(object *unstructured.Unstructured) bool {
	_, found := object.GetAnnotations()["helm.sh/hook"]
	return found
}

func namespace() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{
			"name": Namespace, "labels": map[string]any{"pod-security.kubernetes.io/enforce": "restricted"},
		},
	}}
}

// write labels objects, and leaves out what is there already: the charts share CRDs.
func write(objects []*unstructured.Unstructured) (string, error) {
	var text strings.Builder
	written := map[string]bool{}
	for _, object := range objects {
		key := object.GroupVersionKind().String() + " " + object.GetNamespace() + "/" + object.GetName()
		if written[key] {
			continue
		}
		written[key] = true
		labels := object.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[providerLabel] = provider
		object.SetLabels(labels)
		document, err := yaml.Marshal(object.Object)
		if err != nil {
			return "", fmt.Errorf("writing %s: %w", key, err)
		}
		text.WriteString("---\n" + string(document))
	}
	if strings.Contains(text.String(), "${") || strings.Contains(text.String(), "$$") {
		return "", ErrVariable
	}
	return text.String(), nil
}

// documents are the objects of a text.
func documents(text string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for part := range strings.SplitSeq("\n"+text, "\n---") {
		object := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict([]byte(part), &object.Object); err != nil {
			return nil, fmt.Errorf("parsing what was rendered: %w", err)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
	return objects, nil
}

// Joined are all YAML files of a folder as one text, in the order of their names.
func Joined(folder string) (string, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil || len(files) == 0 {
		return "", errors.Join(fmt.Errorf("no YAML in %q", folder), err)
	}
	var joined strings.Builder
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("reading %q: %w", file, err)
		}
		text := strings.TrimSuffix(strings.TrimPrefix(string(content), "---\n"), "\n")
		joined.WriteString("---\n" + text + "\n")
	}
	return joined.String(), nil
}

// Metadata is the metadata YAML: each series, major and minor, of versions with the contract. It has
// earlier series too, since clusterctl looks there for what is installed before it upgrades.
func Metadata(versions []string) (string, error) {
	var series []*semver.Version
	for _, text := range versions {
		version, err := semver.StrictNewVersion(text)
		if err != nil {
			return "", fmt.Errorf("version %q of the changelog: %w", text, err)
		}
		series = append(series, semver.New(version.Major(), version.Minor(), 0, "", ""))
	}
	slices.SortFunc(series, func(a, b *semver.Version) int { return b.Compare(a) })
	var text strings.Builder
	text.WriteString("apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\nkind: Metadata\nreleaseSeries:\n")
	for _, one := range slices.CompactFunc(series, (*semver.Version).Equal) {
		fmt.Fprintf(&text, "- major: %d\n  minor: %d\n  contract: %s\n", one.Major(), one.Minor(), contract)
	}
	return text.String(), nil
}
