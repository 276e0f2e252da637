package render

import "fmt"

// LimitError says that a rendering takes or gives more than is allowed.
type LimitError struct {
	// What is counted, such as "objects".
	What string
	Max  int
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("the add-on is too large: at most %d %s are taken", e.Max, e.What)
}

// ChartError says that a folder is no chart that can be installed, or that the chart refuses the values or the cluster.
type ChartError struct {
	// Chart is the name where it is known.
	Chart string
	// Problem says what, without any value.
	Problem string
}

func (e *ChartError) Error() string {
	if e.Chart == "" {
		return "the chart " + e.Problem
	}
	return fmt.Sprintf("chart %q %s", e.Chart, e.Problem)
}

// DependenciesMissingError says that a chart names dependencies that its charts/ folder does not hold. They are never
// fetched: what was not in the source is not installed.
type DependenciesMissingError struct {
	Chart string
	// Missing are the names of the dependencies.
	Missing []string
}

func (e *DependenciesMissingError) Error() string {
	return fmt.Sprintf("chart %q lacks its dependencies %q: vendor them with `helm dependency build`", e.Chart, e.Missing)
}

// ExhaustedError says that a rendering was ended because it takes more than it may. Only an edit of the add-on or of its
// values mends that, or a higher limit.
type ExhaustedError struct {
	// Addon is its name.
	Addon string
	// Limit is what ran out: memory, cpu or time.
	Limit string
	// Most is how much is allowed, with its unit.
	Most string
}

func (e *ExhaustedError) Error() string {
	return fmt.Sprintf("rendering add-on %q was ended: it takes more than the allowed %s of %s", e.Addon, e.Most, e.Limit)
}

// DiedError says that a renderer's process ended by itself in the middle of a rendering.
type DiedError struct {
	// Addon is its name.
	Addon string
	// Of is what it died of.
	Of DiedOf
}

// DiedOf is what a renderer died of; empty where nobody knows.
type DiedOf string

const (
	// DiedOfStack: its stack ran out, as it does when a template calls itself without end.
	DiedOfStack DiedOf = "stack"
	// DiedOfMemory: it asked for more memory at once than it may have.
	DiedOfMemory DiedOf = "memory"
)

func (e *DiedError) Error() string {
	switch e.Of {
	case DiedOfStack:
		return fmt.Sprintf("the stack of the renderer ran out with add-on %q: look for a template that calls itself without end", e.Addon)
	case DiedOfMemory:
		return fmt.Sprintf("the renderer of add-on %q asked for more memory at once than it may have: "+
			"look for very large texts or lists", e.Addon)
	}
	return fmt.Sprintf("the renderer ended by itself while it rendered add-on %q", e.Addon)
}

// LostError says that somebody else killed a renderer's process in the middle of a rendering: the kernel when the machine runs
// out of memory, or an administrator. It is no verdict on the add-on, and another try is worth it.
type LostError struct {
	// Addon is its name.
	Addon string
}

func (e *LostError) Error() string {
	return fmt.Sprintf("the renderer of add-on %q was killed from outside, as the kernel does when memory of the machine or of the "+
		"container runs out; nothing says that the add-on is at fault", e.Addon)
}

// ProtocolError says that a child answers what no child of ours would. It is a mistake of ours, or somebody found a way into
// the child; it is never the add-on's author to mend it.
type ProtocolError struct{ Problem string }

func (e *ProtocolError) Error() string {
	return "the renderer gave an answer that is none: " + e.Problem
}
