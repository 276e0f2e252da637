// Command chartreadme writes the README of charts: what each value means, from the comments of
// values.yaml. A value without a comment is an error. ADR 136 compares it with helm-docs.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	yamlnodes "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

func main() {
	for _, folder := range os.Args[1:] {
		if err := run(folder); err != nil {
			fmt.Fprintf(os.Stderr, "chartreadme: %s: %v\n", folder, err)
			os.Exit(1)
		}
	}
}

// run writes the README of a chart's folder.
func run(folder string) error {
	about, err := os.ReadFile(filepath.Join(folder, "Chart.yaml"))
	if err != nil {
		return err
	}
	values, err := os.ReadFile(filepath.Join(folder, "values.yaml"))
	if err != nil {
		return err
	}
	text, err := readme(about, values)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "README.md"), []byte(text), 0o644)
}

// readme is the text, of Chart.yaml and values.yaml.
func readme(about, values []byte) (string, error) {
	var chart struct{ Name, Description, KubeVersion string }
	if err := yaml.Unmarshal(about, &chart); err != nil {
		return "", fmt.Errorf("reading Chart.yaml: %w", err)
	}
	var document yamlnodes.Node
	if err := yamlnodes.Unmarshal(values, &document); err != nil {
		return "", fmt.Errorf("reading values.yaml: %w", err)
	}
	if len(document.Content) != 1 || document.Content[0].Kind != yamlnodes.MappingNode {
		return "", errors.New("values.yaml is no mapping")
	}
	rows, err := rowsOf("", document.Content[0])
	if err != nil {
		return "", err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "<!-- Written by `make generate` from values.yaml. -->\n# %s\n\n%s\n\n", chart.Name, chart.Description)
	if intro := sentence(document.HeadComment); intro != "" {
		text.WriteString(intro + " ")
	}
	fmt.Fprintf(&text, "Kubernetes %s.\n\n| Value | Default | Meaning |\n|---|---|---|\n%s", chart.KubeVersion, strings.Join(rows, ""))
	return text.String(), nil
}

// rowsOf are the rows of a mapping's keys, in their order. A mapping that is written over several lines has a row for each key, below a
// row of its own if it has a comment; any other mapping is a value.
func rowsOf(above string, mapping *yamlnodes.Node) ([]string, error) {
	var rows []string
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		key, value := mapping.Content[i], mapping.Content[i+1]
		path, meaning := above+key.Value, sentence(key.HeadComment)
		inner := value.Kind == yamlnodes.MappingNode && value.Style&yamlnodes.FlowStyle == 0
		if meaning == "" && !inner {
			return nil, fmt.Errorf("values.yaml, line %d: %s has no comment", key.Line, path)
		}
		if !inner {
			written, err := written(value)
			if err != nil {
				return nil, fmt.Errorf("values.yaml, line %d: %w", key.Line, err)
			}
			rows = append(rows, fmt.Sprintf("| `%s` | `%s` | %s |\n", path, written, meaning))
			continue
		}
		if meaning != "" {
			rows = append(rows, fmt.Sprintf("| `%s` | | %s |\n", path, meaning))
		}
		below, err := rowsOf(path+".", value)
		if err != nil {
			return nil, err
		}
		rows = append(rows, below...)
	}
	return rows, nil
}

// written is a value as in values.yaml, on one line.
func written(value *yamlnodes.Node) (string, error) {
	bare := *value
	bare.HeadComment, bare.LineComment, bare.FootComment = "", "", ""
	text, err := yamlnodes.Marshal(&bare)
	return escaped(strings.Join(strings.Fields(string(text)), " ")), err
}

// sentence is a comment as one line of a table.
func sentence(comment string) string {
	var words []string
	for line := range strings.Lines(comment) {
		words = append(words, strings.Fields(strings.TrimPrefix(line, "#"))...)
	}
	return escaped(strings.Join(words, " "))
}

// escaped keeps a text inside its cell, and what looks like a tag from being one.
func escaped(text string) string { return strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(text) }
