package main

import (
	"bytes"
	"fmt"
	"strings"
)

// head of the page; quotes stand for those of code.
const head = `<!-- Written by "make generate" from hack/dashboards. -->
# Dashboards

Both charts bring a dashboard for Grafana with "metrics.dashboards.enabled": a ConfigMap with label "grafana_dashboard", by which the
sidecar of Grafana's chart finds it. Where that looks for another label, or puts dashboards into folders by an annotation, set
"metrics.dashboards.labels" and "annotations". The same files are "dashboard.json" of each chart, to be imported by hand.

They ask a Prometheus that scrapes the managers with the label "namespace", as the charts' ServiceMonitors have it. What each metric
means is in [Metrics](metrics.md); what to do where something is wrong, in [Alerts](alerts.md). Rates and quantiles are over the
interval that Grafana chooses.
`

// page explains all dashboards.
func page(all []dashboard) []byte {
	var text bytes.Buffer
	text.WriteString(strings.ReplaceAll(head, `"`, "`"))
	for _, one := range all {
		fmt.Fprintf(&text, "\n## %s\n\nOf chart `%s`.\n", one.title, one.chart)
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
