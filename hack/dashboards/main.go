// Command dashboards writes the charts' dashboards for Grafana, and the page that explains them, docs/spec/dashboards.md. What each panel
// asks is tried in Prometheus' own engine by test/charts.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	files, err := files()
	if err != nil {
		fmt.Fprintf(os.Stderr, "dashboards: %v\n", err)
		os.Exit(1)
	}
	for name, content := range files {
		if err := os.WriteFile(name, content, 0o644); err != nil {
			fmt.Fprintf(os.Stderr, "dashboards: %v\n", err)
			os.Exit(1)
		}
	}
}

// files are all that is written, by the path in the checkout.
func files() (map[string][]byte, error) {
	all := []dashboard{master(), seed()}
	made := map[string][]byte{filepath.Join("docs", "spec", "dashboards.md"): page(all)}
	for _, one := range all {
		var content bytes.Buffer
		encoder := json.NewEncoder(&content)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(one.model()); err != nil {
			return nil, fmt.Errorf("dashboard %q: %w", one.title, err)
		}
		made[filepath.Join("charts", one.chart, "dashboard.json")] = content.Bytes()
	}
	return made, nil
}
