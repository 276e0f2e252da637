package main

import (
	"bytes"
	"fmt"
	"strings"
)

// head of the page; its quotes become backticks.
const head = `<!-- Written by "make generate" from hack/dashboards. -->
# Dashboards

With "metrics.dashboards.enabled", each chart creates a dashboard for Grafana. The dashboard is in a ConfigMap with label
"grafana_dashboard", and the sidecar of Grafana's chart loads ConfigMaps with this label. If your sidecar looks for another label, or
puts dashboards into folders by an annotation, set "metrics.dashboards.labels" and "metrics.dashboards.annotations". To import the
dashboards yourself, use "dashboard.json" of each chart.

The dashboards query a Prometheus that scrapes the managers with the label "namespace", as the charts' ServiceMonitors do.
[Metrics](metrics.md) explains each metric. [Alerts](alerts.md) explains what to do about problems. Rates and quantiles are over the
interval that Grafana chooses.
`

// page explains all dashboards.
func page(all []dashboard) []byte {
	var text bytes.Buffer
	text.WriteString(strings.ReplaceAll(head, `"`, "`"))
	for _, one := range all {
		fmt.Fprintf(&text, "\n## %s\n\nThis dashboard is in chart `%s`.\n", one.title, one.chart)
		for _, row := range one.rows {
			fmt.Fprintf(&text, "\n### %s\n\n", heading(one, row))
			text.WriteString("| panel | shows |\n|---|---|\n")
			for _, picture := range row.panels {
				fmt.Fprintf(&text, "| %s | %s |\n", picture.title, picture.about)
			}
		}
	}
	return text.Bytes()
}

// heading is another one for each dashboard, since links name it.
func heading(of dashboard, row row) string {
	return row.title + " (" + of.chart[len("trellis-"):] + ")"
}
