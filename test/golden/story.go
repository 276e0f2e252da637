package golden

import (
	"fmt"
	"strings"
	"testing"
)

// Story is what happens in a scenario, step by step: a line for each step, and below it what came of it.
type Story struct {
	text    strings.Builder
	renamed *strings.Replacer
}

// NewStory begins a story. Renamed are pairs as those of strings.NewReplacer, for what differs from run to run.
func NewStory(about string, renamed ...string) *Story {
	s := &Story{renamed: strings.NewReplacer(renamed...)}
	fmt.Fprintf(&s.text, "# %s\n", about)
	return s
}

// Add adds a step and what came of it.
func (s *Story) Add(step string, lines ...string) {
	fmt.Fprintf(&s.text, "\n%s\n", s.renamed.Replace(step))
	for _, line := range lines {
		fmt.Fprintf(&s.text, "  %s\n", s.renamed.Replace(line))
	}
	if len(lines) == 0 {
		s.text.WriteString("  nothing\n")
	}
}

// Match compares the story with its file.
func (s *Story) Match(t testing.TB, file string) {
	t.Helper()
	Match(t, file, s.text.String())
}
