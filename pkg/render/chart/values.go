package chart

import (
	"encoding/json"
	"fmt"
	"slices"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/render/redact"
	"github.com/trellis-addons/trellis/pkg/values"
	"github.com/trellis-addons/trellis/pkg/values/templatedata"
)

// helmValues is a copy of values with Helm's kinds of numbers.
func helmValues(content any) (map[string]any, error) {
	encoded, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("encoding the values: %w", err)
	}
	copied := map[string]any{}
	if err := json.Unmarshal(encoded, &copied); err != nil {
		return nil, fmt.Errorf("decoding the values: %w", err)
	}
	if copied == nil {
		copied = map[string]any{}
	}
	return copied, nil
}

// selectDependencies removes the dependencies that the values disable from the chart, with their content, and imports
// values of the others. As in the helm program, a null among these stays.
func selectDependencies(chart *helmchart.Chart, config map[string]any) error {
	if err := chartutil.ProcessDependenciesWithMerge(chart, config); err != nil {
		return &render.ChartError{Chart: chart.Name(), Problem: "has dependencies that don't fit the values: " + err.Error()}
	}
	return nil
}

// renderValues returns the data of templates for a chart with selected dependencies.
func renderValues(
	chart *helmchart.Chart, config map[string]any, input render.Input, capabilities *chartutil.Capabilities,
) (chartutil.Values, error) {
	options := chartutil.ReleaseOptions{
		Name: input.Release.Name, Namespace: input.Release.Namespace, Revision: input.Release.Revision,
		IsInstall: input.Release.IsInstall, IsUpgrade: !input.Release.IsInstall,
	}
	all, err := chartutil.ToRenderValuesWithSchemaValidation(chart, config, options, capabilities, true)
	if err != nil {
		return nil, &render.ChartError{Chart: chart.Name(), Problem: "can't use the values: " + err.Error()}
	}
	merged, ok := all["Values"].(chartutil.Values)
	if !ok {
		return nil, &render.ChartError{Chart: chart.Name(), Problem: "has values that are not a map"}
	}
	if err := checkSchemas(chart, merged); err != nil {
		return nil, err
	}
	return all, addClusterData(chart, merged, input.Data)
}

// addClusterData sets .Values.kkp if the chart or a text of its values names it, unless the chart's own schema refuses the key.
func addClusterData(chart *helmchart.Chart, merged map[string]any, data templatedata.Data) error {
	if !namesClusterData(chart, merged) {
		return nil
	}
	content, err := templatedata.Map(data)
	if err != nil {
		return err
	}
	if content, err = helmValues(content); err != nil {
		return err
	}
	merged[values.ReservedKey] = content
	if chart.Schema == nil {
		return nil
	}
	schema, err := compile(chart)
	if err != nil {
		return err
	}
	if schema.Validate(merged) != nil {
		delete(merged, values.ReservedKey)
	}
	return nil
}

// namesClusterData searches the files of a chart and its dependencies, and texts that function tpl may render.
func namesClusterData(chart *helmchart.Chart, merged map[string]any) bool {
	named := false
	look := func(text string) { named = named || templatedata.Names(text, values.ReservedKey) }
	redact.EachText(merged, look)
	for _, file := range slices.Concat(chart.Templates, chart.Files) {
		look(string(file.Data))
	}
	return named || slices.ContainsFunc(chart.Dependencies(), func(one *helmchart.Chart) bool { return namesClusterData(one, nil) })
}

// capabilitiesOf returns a chart's view of the cluster, with the kinds of its own crds/ folder.
func capabilitiesOf(input render.Capabilities, crds []*unstructured.Unstructured) (*chartutil.Capabilities, error) {
	version, err := chartutil.ParseKubeVersion(input.KubeVersion)
	if err != nil {
		return nil, &render.ChartError{Problem: "needs the cluster's Kubernetes version, which is not known"}
	}
	known := slices.Clone(input.APIVersions)
	for _, crd := range crds {
		known = append(known, servedBy(crd)...)
	}
	slices.Sort(known)
	return &chartutil.Capabilities{
		KubeVersion: *version, APIVersions: slices.Compact(known), HelmVersion: chartutil.DefaultCapabilities.HelmVersion,
	}, nil
}

// servedBy are the group/versions and group/version/Kinds that a CRD adds.
func servedBy(crd *unstructured.Unstructured) []string {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	var served []string
	for _, entry := range versions {
		version, ok := entry.(map[string]any)
		if !ok || version["served"] != true {
			continue
		}
		if name, ok := version["name"].(string); ok {
			served = append(served, group+"/"+name, group+"/"+name+"/"+kind)
		}
	}
	return served
}
