package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/trellis-addons/trellis/pkg/values"
	"github.com/trellis-addons/trellis/pkg/values/strictyaml"
)

// Given are the values of flags --values, --set and --set-string.
type Given struct{ files, set, texts []string }

// Flags adds the flags to a command.
func (g *Given) Flags(command *cobra.Command) {
	command.Flags().StringArrayVarP(&g.files, "values", "f", nil,
		"`FILE` with values in YAML; - is standard input; later files override earlier ones")
	command.Flags().StringArrayVar(&g.set, "set", nil,
		"`PATH=VALUE`: one value, in YAML, such as replicas=2 or args[0]=a; overrides the files")
	command.Flags().StringArrayVar(&g.texts, "set-string", nil, "`PATH=TEXT`: one value that is text, even if it looks like a number")
}

// IsEmpty says whether none of the flags is set.
func (g *Given) IsEmpty() bool { return len(g.files)+len(g.set)+len(g.texts) == 0 }

// CheckInput refuses to read values and an answer from the same input. Errors: ExitUsage.
func (g *Given) CheckInput(c *Consent) error {
	if slices.Contains(g.files, "-") && !c.yes {
		return Fail(ExitUsage, "add --yes", "standard input is used for the values, so the command can't read a confirmation from it")
	}
	return nil
}

// Values puts the values of the flags over those of below, which stay unchanged. Errors have no value: ExitUsage.
func (g *Given) Values(t *Tool, below map[string]any) (map[string]any, error) {
	layers := []values.Layer{{Origin: "the installation", Values: below}}
	for _, file := range g.files {
		read, err := t.valuesIn(file)
		if err != nil {
			return nil, err
		}
		layers = append(layers, values.Layer{Origin: file, Values: read})
	}
	merged, _, err := values.Merge(layers)
	if err != nil {
		return nil, &Error{Code: ExitUsage, Err: err}
	}
	for _, set := range g.set {
		if err := setOne(merged, "--set", set, decodeValue); err != nil {
			return nil, err
		}
	}
	for _, set := range g.texts {
		if err := setOne(merged, "--set-string", set, func(text string) (any, error) { return text, nil }); err != nil {
			return nil, err
		}
	}
	if _, _, err := values.Merge([]values.Layer{{Origin: "--set", Values: merged}}); err != nil {
		return nil, &Error{Code: ExitUsage, Err: err}
	}
	return merged, nil
}

// valuesIn reads a file of values, of which it takes no more than values may have.
func (t *Tool) valuesIn(file string) (map[string]any, error) {
	from, name := t.In, "the input"
	if file != "-" {
		opened, err := os.Open(file)
		if err != nil {
			return nil, &Error{Code: ExitUsage, Hint: "name a file with values with --values", Err: err}
		}
		defer opened.Close()
		from, name = opened, fmt.Sprintf("%q", file)
	}
	content, err := io.ReadAll(io.LimitReader(from, values.MaxBytes+1))
	if err != nil {
		return nil, &Error{Code: ExitUsage, Hint: "name a file with values with --values", Err: err}
	}
	if len(content) > values.MaxBytes {
		return nil, Fail(ExitUsage, fmt.Sprintf("values have at most %d KiB", values.MaxBytes>>10), "%s is too large", name)
	}
	read, err := values.Decode(content)
	if err != nil {
		return nil, Fail(ExitUsage, "correct it: values are a map in YAML", "%s: %w", name, err)
	}
	return read, nil
}

func setOne(merged map[string]any, flag, set string, value func(string) (any, error)) error {
	at, text, isSet := strings.Cut(set, "=")
	if !isSet {
		return Fail(ExitUsage, "write it like replicas=2", "%s %q has no \"=\"", flag, at)
	}
	path, err := values.ParsePath(at)
	if err != nil {
		return Fail(ExitUsage, "", "%s: %w", flag, err)
	}
	decoded, err := value(text)
	if err != nil {
		return Fail(ExitUsage, "write text as --set-string "+path.String()+"=…", "%s %s: the value %w", flag, path, err)
	}
	if err := path.Set(merged, decoded); err != nil {
		return Fail(ExitUsage, "set the whole value", "%s: %w", flag, err)
	}
	return nil
}

// decodeValue reads a value in YAML. An empty one is an empty text.
func decodeValue(text string) (any, error) {
	if text == "" {
		return "", nil
	}
	return strictyaml.Decode([]byte(text), strictyaml.Limits{Bytes: values.MaxBytes, Depth: values.MaxDepth})
}

// RawValues are values as an installation has them; nil for none.
func RawValues(of map[string]any) *runtime.RawExtension {
	if len(of) == 0 {
		return nil
	}
	encoded, _ := json.Marshal(of) // maps, lists and plain values always encode
	return &runtime.RawExtension{Raw: encoded}
}

// ReadValues are the values of an installation.
func ReadValues(of *runtime.RawExtension) (map[string]any, error) {
	if of == nil || len(of.Raw) == 0 {
		return map[string]any{}, nil
	}
	read, err := values.Decode(of.Raw)
	if err != nil {
		return nil, errors.Join(errors.New("the installation's own values can't be read"), err)
	}
	return read, nil
}

// Paths are the dotted paths of values, sorted, each with its value in JSON.
func Paths(of map[string]any) (paths []string, leaves map[string]string) {
	leaves = map[string]string{}
	addLeaves(leaves, of, nil)
	return slices.Sorted(maps.Keys(leaves)), leaves
}

func addLeaves(leaves map[string]string, of map[string]any, at values.Path) {
	for key, value := range of {
		here := append(slices.Clip(at), values.Step{Key: key})
		if below, isMap := value.(map[string]any); isMap && len(below) > 0 {
			addLeaves(leaves, below, here)
			continue
		}
		encoded, _ := json.Marshal(value)
		leaves[here.String()] = string(encoded)
	}
}
