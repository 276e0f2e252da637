package render

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Request requests the rendering of an input.
type Request struct {
	// Method is the catalogue's name of the method.
	Method string
	// Inputs is a digest of all that the objects depend on: equal ones are rendered once.
	Inputs string
	Input  Input
	// Rerender renders again even if a result is kept, to compare the two.
	Rerender bool
	// Wake is called, from any goroutine, when a pending rendering has ended.
	Wake func()
}

// Kept is the rendering of a request.
type Kept struct {
	Result
	// Changed are the objects that differ in another rendering of equal inputs, sorted. Result has the earlier objects,
	// as long as they are kept.
	Changed []ObjectName
}

// ObjectName names an object as rendered: without a namespace it may get the installation's.
type ObjectName struct {
	GVK             schema.GroupVersionKind
	Namespace, Name string
	// HookPath is the template of a chart's hook; empty for other objects.
	HookPath string
}

// String returns "Kind namespace/name", or "hook Kind namespace/name of path".
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
	// Render returns the objects, ErrPending, or the error of the method's Renderer, in a *PutOffError if a later try
	// may succeed.
	Render(ctx context.Context, request Request) (Kept, error)
}

type sparingKey struct{}

// Sparing marks what is rendered with a context, such as for a preview: it is kept in a small part of the space, so that it displaces few
// renderings of others.
func Sparing(ctx context.Context) context.Context { return context.WithValue(ctx, sparingKey{}, true) }

// IsSparing says whether a context is marked by Sparing.
func IsSparing(ctx context.Context) bool { return ctx.Value(sparingKey{}) != nil }

// ErrPending reports that a rendering takes longer than a reconciliation should wait; it continues.
var ErrPending = errors.New("the add-on is being rendered")

// PutOffError is a failure that the machine may have caused: the next try is not before a time.
type PutOffError struct {
	Err   error
	Until time.Time
}

func (e *PutOffError) Error() string {
	return fmt.Sprintf("%v; tried again at %s", e.Err, e.Until.UTC().Format(time.RFC3339))
}

// Unwrap returns the failure.
func (e *PutOffError) Unwrap() error { return e.Err }

// Lasting reports whether the input causes an error: equal inputs fail again in the same way.
func Lasting(err error) bool {
	return is[*TemplateError](err) || is[*NoManifestsError](err) || is[*LimitError](err) ||
		is[*ChartError](err) || is[*DependenciesMissingError](err)
}

// Costly reports whether an error ended a renderer and probably comes from the input.
func Costly(err error) bool {
	return is[*ExhaustedError](err) || is[*DiedError](err) || is[*ProtocolError](err)
}

func is[T error](err error) bool {
	_, ok := errors.AsType[T](err)
	return ok
}
