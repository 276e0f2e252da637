package values

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/text"
)

const (
	// unknownShown is how many unknown keys are named; the others are counted.
	unknownShown = 5
	// maxComparisons bounds the search for similar keys.
	maxComparisons = 1024
	// maxKeyShown bounds a key in messages, in bytes.
	maxKeyShown = 64
)

// UnknownKeys reports, in sentences, given keys that are neither on the path of a form field nor among the known
// values: they may be misspelt. It checks only maps that contain a field. If values may also be known elsewhere, as
// to a chart or a valuesTemplate, it reports only keys similar to a field's. The result is sorted, with at most six
// sentences.
func UnknownKeys(form []kubermaticv1.FormField, known, given map[string]any, elsewhere bool) []string {
	if len(form) == 0 {
		return nil
	}
	root, err := formTree(form)
	if err != nil {
		return nil // the form itself is checked elsewhere
	}
	search := unknownSearch{elsewhere: elsewhere, remaining: maxComparisons}
	search.compare(nil, root, known, given)
	if more := search.count - len(search.reported); more > 0 {
		search.reported = append(search.reported, fmt.Sprintf("and %d more unknown keys", more))
	}
	return search.reported
}

type unknownSearch struct {
	elsewhere bool
	reported  []string
	count     int
	// remaining is the number of comparisons still allowed.
	remaining int
}

func (s *unknownSearch) compare(path Path, node *schemaNode, known, given any) {
	switch given := given.(type) {
	case map[string]any:
		knownHere, _ := known.(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(given)) {
			child, below := node.properties[key], knownHere[key]
			if child != nil {
				s.compare(path.key(key), child, below, given[key])
			} else if _, ok := knownHere[key]; !ok && node.properties != nil {
				s.report(path.key(key), node)
			}
		}
	case []any:
		knownHere, _ := known.([]any)
		for i := range min(len(given), len(node.items)) {
			var below any
			if i < len(knownHere) {
				below = knownHere[i]
			}
			s.compare(append(slices.Clip(path), Step{Index: i, IsIndex: true}), node.items[i], below, given[i])
		}
	}
}

func (s *unknownSearch) report(path Path, node *schemaNode) {
	similar := s.similar(path[len(path)-1].Key, slices.Sorted(maps.Keys(node.properties)))
	if s.elsewhere && similar == "" {
		return
	}
	if s.count++; len(s.reported) == unknownShown {
		return
	}
	message := fmt.Sprintf("key %q is neither in the form nor in the catalogue's values", text.Cut(path.String(), maxKeyShown))
	if s.elsewhere {
		message = fmt.Sprintf("key %q is not in the form", text.Cut(path.String(), maxKeyShown))
	}
	if similar != "" {
		meant := append(slices.Clone(path[:len(path)-1]), Step{Key: similar})
		message += fmt.Sprintf(": did you mean %q?", text.Cut(meant.String(), maxKeyShown))
	}
	s.reported = append(s.reported, message)
}

// similar returns the first name that differs from the key by a typing error, or "".
func (s *unknownSearch) similar(key string, names []string) string {
	for _, name := range names {
		if s.remaining == 0 {
			return ""
		}
		s.remaining--
		if IsSlip(key, name) {
			return name
		}
	}
	return ""
}

// UnknownAddon says that no catalogue has an add-on, and which of the known names may be meant.
func UnknownAddon(name string, known []string) string {
	message := fmt.Sprintf("no catalogue has add-on %q", name)
	search := unknownSearch{remaining: maxComparisons}
	if similar := search.similar(name, known); similar != "" {
		message += fmt.Sprintf(": did you mean %q?", similar)
	}
	return message
}

// IsSlip says whether two texts differ only by case, or by one inserted, missing, replaced or swapped letter;
// two of them from eight letters on.
func IsSlip(a, b string) bool {
	a, b = strings.ToLower(a), strings.ToLower(b)
	allowed := 1
	if min(len(a), len(b)) >= 8 {
		allowed = 2
	}
	const shortest, longest = 3, 64
	if min(len(a), len(b)) < shortest || max(len(a), len(b)) > longest || max(len(a)-len(b), len(b)-len(a)) > allowed {
		return a == b
	}
	return distance(a, b) <= allowed
}

// distance is the number of edits between texts: bytes inserted, removed, replaced or swapped.
func distance(a, b string) int {
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		twoBefore := before
		before, row = row, make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			exchange := before[j-1]
			if a[i-1] != b[j-1] {
				exchange++
			}
			row[j] = min(before[j]+1, row[j-1]+1, exchange)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], twoBefore[j-2]+1)
			}
		}
	}
	return row[len(b)]
}
