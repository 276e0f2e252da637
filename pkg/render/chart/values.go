package chart

import (
	"encoding/json"
	"fmt"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"

	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/templatedata"
	"github.com/trellis-addons/trellis/pkg/values"
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

// renderValues settles which dependencies are on and gives what templates see. The chart is changed by it.
func renderValues(chart *helmchart.Chart, input render.Input, capabilities *chartutil.Capabilities) (chartutil.Values, error) {
	config, err := helmValues(input.Values)
	if err != nil {
		return nil, err
	}
	if err := chartutil.ProcessDependencies(chart, config); err != nil {
		return nil, &render.ChartError{Chart: chart.Name(), Problem: "has dependencies that don't fit the values: " + err.Error()}
	}
	options := chartutil.ReleaseOptions{
		Name: input.Release.Name, Namespace: input.Release.Namespace, Revision: input.Release.Revision,
		IsInstall: input.Release.IsInstall, IsUpgrade: !input.Release.IsInstall,
	}
	all, err := chartutil.ToRenderValuesWithSchemaValidation(chart, config, options, capabilities, true)
	if err != nil {
		return nil, &render.ChartError{Chart: chart.Name(), Problem: "can't take the values: " + err.Error()}
	}
	merged, ok := all["Values"].(chartutil.Values)
	if !ok {
		return nil, &render.ChartError{Chart: chart.Name(), Problem: "has values that are no map"}
	}
	if err := checkSchemas(chart, merged); err != nil {
		return nil, err
	}
	return all, addClusterData(chart, merged, input.Data)
}

// addClusterData puts the cluster's data under .Values.kkp, unless the chart's own schema refuses the key.
func addClusterData(chart *helmchart.Chart, merged map[string]any, data templatedata.Data) error {
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
