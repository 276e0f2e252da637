package apply

import (
	"fmt"
	"sort"
	"strings"

	"github.com/trellis-addons/trellis/pkg/status"
)

// shortestMasked is the length from which on a value may be a secret; shorter ones are words of everyday.
const shortestMasked = 6

// maskValues takes the values that an object holds out of a text about it. What identifies the object stays, since the text
// is of no use without it.
func maskValues(text string, object map[string]any) string {
	var values []string
	for field, value := range object {
		if field != "metadata" && field != "kind" && field != "apiVersion" {
			values = leaves(value, values)
		}
	}
	sort.Slice(values, func(a, b int) bool { return len(values[a]) > len(values[b]) })
	for _, value := range values {
		text = strings.ReplaceAll(text, value, "***")
	}
	return status.Message(text)
}

func leaves(value any, found []string) []string {
	switch typed := value.(type) {
	case map[string]any:
		for _, inner := range typed {
			found = leaves(inner, found)
		}
	case []any:
		for _, inner := range typed {
			found = leaves(inner, found)
		}
	case nil, bool:
	default:
		if text := fmt.Sprint(typed); len(text) >= shortestMasked {
			found = append(found, text)
		}
	}
	return found
}
