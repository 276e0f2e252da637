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

// ChartError says that a folder is no chart, or that the chart refuses values or cluster.
type ChartError struct {
	// Chart is the name where it is known.
	Chart string
	// Problem has no value in it.
	Problem string
	Stage   Stage
}

func (e *ChartError) Error() string {
	if e.Chart == "" {
		return "the chart " + e.Problem
	}
	return fmt.Sprintf("chart %q %s", e.Chart, e.Problem)
}

// DependenciesMissingError says that a chart's charts/ folder lacks dependencies.
type DependenciesMissingError struct {
	Chart   string
	Missing []string
}

func (e *DependenciesMissingError) Error() string {
	return fmt.Sprintf("chart %q lacks its dependencies %q: vendor them with `helm dependency build`", e.Chart, e.Missing)
}

// What an ExhaustedError is about.
const (
	LimitMemory = "memory"
	LimitCPU    = "cpu"
	LimitTime   = "time"
)

// ExhaustedError says that a rendering was ended since it takes too much.
type ExhaustedError struct {
	Addon string
	// Limit is what ran out: LimitMemory, LimitCPU or LimitTime.
	Limit string
	// Most is how much is allowed, with its unit.
	Most string
}

func (e *ExhaustedError) Error() string {
	return fmt.Sprintf("rendering add-on %q was ended: it takes more than the allowed %s of %s", e.Addon, e.Most, e.Limit)
}

// DiedError says that a renderer's process ended by itself in a rendering.
type DiedError struct {
	Addon string
	Of    DiedOf
}

// DiedOf is what a renderer died of; empty where that is not known.
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

// LostError says that another killed a renderer's process in a rendering: the kernel without
// memory, or an administrator. The add-on may be right, and another try may succeed.
type LostError struct{ Addon string }

func (e *LostError) Error() string {
	return fmt.Sprintf("the renderer of add-on %q was killed from outside, as the kernel does when memory of the machine or of the "+
		"container runs out; nothing says that the add-on is at fault", e.Addon)
}

// ProtocolError says that a child gave a wrong answer: a mistake of ours, or an attack on it.
type ProtocolError struct{ Problem string }

func (e *ProtocolError) Error() string {
	return "the renderer gave an answer that is none: " + e.Problem
}
