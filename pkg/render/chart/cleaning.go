package chart

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chartutil"
)

// cleaning copies data without secrets, each map once: a template may put a map into itself.
type cleaning struct {
	guard *guard
	done  map[uintptr]any
}

// clean empties texts that contain a secret. Only texts, maps and lists come from values.
func (c *cleaning) clean(content any) any {
	switch content := content.(type) {
	case string:
		return c.text(content)
	case []byte:
		return []byte(c.text(string(content)))
	case map[string]any:
		return c.table(content)
	case chartutil.Values:
		return chartutil.Values(c.table(content))
	case []any:
		return c.list(content)
	case []string:
		copied := slices.Clone(content)
		for i := range copied {
			copied[i] = c.text(copied[i])
		}
		return copied
	case map[string]string:
		copied := maps.Clone(content)
		for key := range copied {
			copied[key] = c.text(copied[key])
		}
		return copied
	}
	return content
}

func (c *cleaning) table(content map[string]any) map[string]any {
	if content == nil {
		return nil
	}
	at := reflect.ValueOf(content).Pointer()
	if copied, isThere := c.done[at].(map[string]any); isThere {
		return copied
	}
	copied := make(map[string]any, len(content))
	c.done[at] = copied
	for key, value := range content {
		copied[c.text(key)] = c.clean(value)
	}
	return copied
}

func (c *cleaning) list(content []any) []any {
	copied := make([]any, len(content))
	for i := range content {
		copied[i] = c.clean(content[i])
	}
	return copied
}

func (c *cleaning) text(text string) string {
	for _, secret := range c.guard.secrets {
		if strings.Contains(text, secret) {
			return ""
		}
	}
	return text
}
