package main

import "strings"

// dashboard is one of a chart.
type dashboard struct {
	chart, title string
	rows         []row
}

// row is a headed group of panels.
type row struct {
	title  string
	panels []panel
}

// panel is one picture. Its queries have braces behind each metric, which the namespace is put into.
type panel struct {
	title, unit string
	// about says what the picture tells, as a sentence or two.
	about   string
	queries []query
}

// query is what a panel asks, and how its series are called.
type query struct{ ask, legend string }

// Sizes on Grafana's grid, which is 24 wide.
const (
	width, height = 8, 8
	across        = 24 / width
)

type object = map[string]any

// expression is a query as it stands in a dashboard.
func (q query) expression() string {
	return strings.ReplaceAll(strings.ReplaceAll(q.ask, "{", `{namespace=~"$namespace",`), ",}", "}")
}

// model is the dashboard as Grafana reads it.
func (d dashboard) model() object {
	panels, id, top := []object{}, 0, 0
	next := func() int { id++; return id }
	for _, one := range d.rows {
		panels = append(panels, object{
			"id": next(), "type": "row", "title": one.title, "collapsed": false, "panels": []object{},
			"gridPos": object{"x": 0, "y": top, "w": 24, "h": 1},
		})
		top++
		for i, picture := range one.panels {
			made := picture.model()
			made["id"] = next()
			made["gridPos"] = object{"x": i % across * width, "y": top + i/across*height, "w": width, "h": height}
			panels = append(panels, made)
		}
		top += (len(one.panels) + across - 1) / across * height
	}
	return object{
		"uid": d.chart, "title": d.title, "tags": []string{"trellis"}, "schemaVersion": 39, "version": 1, "editable": true,
		"refresh": "1m", "time": object{"from": "now-6h", "to": "now"}, "timezone": "browser", "graphTooltip": 1,
		"templating": object{"list": variables()}, "annotations": object{"list": []object{}}, "panels": panels,
	}
}

// variables are where the data is, and of which namespaces it is shown.
func variables() []object {
	return []object{
		{"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"},
		{
			"name": "namespace", "type": "query", "label": "Namespace", "datasource": source(), "refresh": 2, "multi": true, "includeAll": true,
			"allValue": ".*", "query": object{"query": "label_values(trellis_build_info, namespace)", "refId": "namespace"},
			"current": object{"selected": true, "text": "All", "value": "$__all"},
		},
	}
}

func source() object { return object{"type": "prometheus", "uid": "${datasource}"} }

func (p panel) model() object {
	targets := make([]object, 0, len(p.queries))
	for i, one := range p.queries {
		targets = append(targets, object{
			"refId": string(rune('A' + i)), "datasource": source(), "expr": one.expression(), "legendFormat": one.legend, "editorMode": "code",
		})
	}
	drawn := object{"unit": p.unit, "min": 0, "custom": object{"fillOpacity": 10, "showPoints": "never"}}
	return object{
		"type": "timeseries", "title": p.title, "description": p.about, "datasource": source(), "targets": targets,
		"fieldConfig": object{"defaults": drawn, "overrides": []object{}},
		"options":     object{"legend": object{"displayMode": "list", "placement": "bottom"}, "tooltip": object{"mode": "multi", "sort": "desc"}},
	}
}
