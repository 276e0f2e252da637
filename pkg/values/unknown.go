package values

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

const (
	// unknownTold is how many keys that nobody knows are told; the others are counted.
	unknownTold = 5
	// maxComparisons of keys in one check: who writes 60,000 keys is not told what each might have meant.
	maxComparisons = 1024
	// maxKeyShown is how much of a key is told, in bytes.
	maxKeyShown = 64
)

// UnknownKeys tells, in sentences, which keys a user gave that are neither on the way to a field of the form nor among the known
// values: they may be misspelt. Only maps that hold a field are looked at, since below all others anything may stand. Where values
// may be known elsewhere, to a chart or a valuesTemplate, only keys that look like a field's are told. Sorted, at most six.
func UnknownKeys(form []kubermaticv1.FormField, known, given map[string]any, elsewhere bool) []string {
	if len(form) == 0 {
		return nil
	}
	root, err := formTree(form)
	if err != nil {
		return nil // what is wrong with the form is told elsewhere
	}
	search := unknownSearch{elsewhere: elsewhere, left: maxComparisons}
	search.compare(nil, root, known, given)
	if more := search.count - len(search.told); more > 0 {
		search.told = append(search.told, fmt.Sprintf("and %d more unknown keys", more))
	}
	return search.told
}

type unknownSearch struct {
	elsewhere bool
	told      []string
	count     int
	// left are the comparisons that may still be made.
	left int
}

// compare compares what stands at a path with the form's and the known values' parts there.
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

// report notes an unknown key below a node.
func (s *unknownSearch) report(path Path, node *schemaNode) {
	similar := s.similar(path[len(path)-1].Key, slices.Sorted(maps.Keys(node.properties)))
	if s.elsewhere && similar == "" {
		return
	}
	if s.count++; len(s.told) == unknownTold {
		return
	}
	text := fmt.Sprintf("key %q is neither in the form nor in the catalogue's values", shownKey(path.String()))
	if s.elsewhere {
		text = fmt.Sprintf("key %q is not in the form", shownKey(path.String()))
	}
	if similar != "" {
		text += fmt.Sprintf(": is %q meant?", shownKey(append(slices.Clone(path[:len(path)-1]), Step{Key: similar}).String()))
	}
	s.told = append(s.told, text)
}

func shownKey(text string) string {
	if len(text) <= maxKeyShown {
		return text
	}
	return strings.ToValidUTF8(text[:maxKeyShown], "") + "…"
}

// similar gives the first of the names that a key is a slip away from; empty where there is none.
func (s *unknownSearch) similar(key string, names []string) string {
	for _, name := range names {
		if s.left == 0 {
			return ""
		}
		s.left--
		if isSlip(key, name) {
			return name
		}
	}
	return ""
}

// isSlip: two texts are equal but for upper case, or for one letter too much, too few, another or swapped with its neighbour; from
// eight letters on, for two.
func isSlip(a, b string) bool {
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

// distance is the number of edits between two short texts: bytes put in, left out, exchanged, or swapped with their neighbour.
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
