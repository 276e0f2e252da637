package render

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Request asks for what an input renders to.
type Request struct {
	// Method is in the catalogue's words.
	Method string
	// Inputs is a digest of everything that the objects depend on: equal ones are rendered once.
	Inputs string
	Input  Input
	// Anew renders although a result is kept, to compare the two.
	Anew bool
	// Wake is called, from any goroutine, when a rendering has ended that was pending.
	Wake func()
}

// Kept is what a request renders to.
type Kept struct {
	Result
	// Changed are the objects that another rendering of equal inputs gave otherwise, sorted. Result
	// has the earlier objects, as long as they are kept.
	Changed []ObjectName
}

// ObjectName names an object as rendered: without a namespace it may get the installation's.
type ObjectName struct {
	GVK             schema.GroupVersionKind
	Namespace, Name string
	// HookPath is the template of a chart's hook; empty for other objects.
	HookPath string
}

// String says "Kind namespace/name", or "hook Kind namespace/name of path".
func (o ObjectName) String() string {
	name := o.Name
	if o.Namespace != "" {
		name = o.Namespace + "/" + name
	}
	if o.HookPath != "" {
		return fmt.Sprintf("hook %s %s of %s", o.GVK.Kind, name, o.HookPath)
	}
	return o.GVK.Kind + " " + name
}

// Keeper renders equal inputs once, and keeps the result or failure.
type Keeper interface {
	// Render gives the objects, ErrPending, or the error of the method's Renderer, in a
	// *PutOffError where a later try may succeed.
	Render(ctx context.Context, request Request) (Kept, error)
}

// ErrPending says that a rendering takes longer than a pass should wait; it continues.
var ErrPending = errors.New("the add-on is being rendered")

// PutOffError is a failure that may be the machine's: the next try is not before a time.
type PutOffError struct {
	Err   error
	Until time.Time
}

func (e *PutOffError) Error() string {
	return fmt.Sprintf("%v; tried again at %s", e.Err, e.Until.UTC().Format(time.RFC3339))
}

// Unwrap gives the failure.
func (e *PutOffError) Unwrap() error { return e.Err }

// Lasting says whether an error comes with the input: equal inputs fail again in the same way.
func Lasting(err error) bool {
	return is[*TemplateError](err) || is[*NoManifestsError](err) || is[*LimitError](err) ||
		is[*ChartError](err) || is[*DependenciesMissingError](err)
}

// Costly says whether an error ended a renderer and probably comes with the input.
func Costly(err error) bool {
	return is[*ExhaustedError](err) || is[*DiedError](err) || is[*ProtocolError](err)
}

func is[T error](err error) bool {
	_, ok := errors.AsType[T](err)
	return ok
}
