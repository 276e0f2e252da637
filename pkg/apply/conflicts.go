package apply

import (
	"github.com/trellis-addons/trellis/pkg/calls"
)

// checkConflicts refuses conflicts about more fields than an object has.
func checkConflicts(it *item, fields []string) error {
	if have := nodes(it.object.Object); len(fields) > have {
		return calls.Misbehaves("its refusal of %s names %d fields, and %d were sent", it.key, len(fields), have)
	}
	return nil
}

// nodes counts the maps, lists and values of a tree.
func nodes(value any) (count int) {
	switch typed := value.(type) {
	case map[string]any:
		for _, inner := range typed {
			count += nodes(inner)
		}
	case []any:
		for _, inner := range typed {
			count += nodes(inner)
		}
	}
	return count + 1
}
