package render

import "fmt"

// LimitError reports that a rendering uses or returns more than is allowed.
type LimitError struct {
	// What is the counted unit, such as "objects".
	What string
	Max  int
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("the add-on is too large: at most %d %s are allowed", e.Max, e.What)
}

// ChartError reports that a folder is no chart, or that the chart refuses values or cluster.
type ChartError struct {
	// Chart is the name, if it is known.
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

// DependenciesMissingError reports that a chart's charts/ folder lacks dependencies.
type DependenciesMissingError struct {
	Chart   string
	Missing []string
}

func (e *DependenciesMissingError) Error() string {
	return fmt.Sprintf("chart %q lacks its dependencies %q: vendor them with `helm dependency build`", e.Chart, e.Missing)
}

// Limits of an ExhaustedError.
const (
	LimitMemory = "memory"
	LimitCPU    = "cpu"
	LimitTime   = "time"
)

// ExhaustedError reports that a rendering was ended because it exceeded a limit.
type ExhaustedError struct {
	Addon string
	// Limit is the exceeded one: LimitMemory, LimitCPU or LimitTime.
	Limit string
	// Most is the limit, with its unit.
	Most string
}

func (e *ExhaustedError) Error() string {
	return fmt.Sprintf("rendering add-on %q was stopped: it takes more than the allowed %s of %s", e.Addon, e.Most, e.Limit)
}

// DiedError reports that a renderer's process ended in a rendering, although the manager did not kill it.
type DiedError struct {
	Addon string
	Of    DiedOf
}

// DiedOf is the cause of a renderer's death; empty if it is unknown.
type DiedOf string

const (
	// DiedOfStack: its stack ran out, as it does when a template calls itself without end.
	DiedOfStack DiedOf = "stack"
	// DiedOfMemory: it requested more memory at once than it may have.
	DiedOfMemory DiedOf = "memory"
)

func (e *DiedError) Error() string {
	switch e.Of {
	case DiedOfStack:
		return fmt.Sprintf("rendering add-on %q overflowed the stack: look for a template that calls itself without end", e.Addon)
	case DiedOfMemory:
		return fmt.Sprintf("rendering add-on %q needs more memory at once than is allowed: look for very large strings or lists", e.Addon)
	}
	return fmt.Sprintf("the renderer of add-on %q exited unexpectedly", e.Addon)
}

// LostError reports that another process killed a renderer in a rendering: the kernel without memory, or an
// administrator. The add-on may be right, and another try may succeed.
type LostError struct{ Addon string }

func (e *LostError) Error() string {
	return fmt.Sprintf("the renderer of add-on %q was killed by another process or by the kernel, which does so if the machine or the "+
		"container runs out of memory; the add-on is not necessarily the cause", e.Addon)
}

// ProtocolError reports that a child sent an invalid answer: because of a bug of Trellis, or an attack on the child.
type ProtocolError struct{ Problem string }

func (e *ProtocolError) Error() string {
	return "the renderer's answer is not valid: " + e.Problem
}
