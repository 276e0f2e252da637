package text

import (
	"regexp"
	"sync"
)

// OtherWord replaces all words that have no series of their own.
const OtherWord = "other"

// ObjectName matches a name of an object in Kubernetes: a DNS subdomain.
var ObjectName = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`)

// Words are values of a label of metrics that others can choose: the first ones have series of their own, and all
// others share one. It is safe for concurrent use.
type Words struct {
	most    int
	pattern *regexp.Regexp

	mutex sync.Mutex
	known map[string]bool
}

// NewWords makes Words, of which most are distinguished if they match a pattern.
func NewWords(most int, pattern *regexp.Regexp) *Words {
	return &Words{most: most, pattern: pattern, known: map[string]bool{}}
}

// Label returns the word, or OtherWord.
func (w *Words) Label(word string) string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	switch {
	case w.known[word]:
		return word
	case len(w.known) >= w.most || !w.pattern.MatchString(word):
		return OtherWord
	}
	w.known[word] = true
	return word
}
