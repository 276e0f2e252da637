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
	// Method is how, in the catalogue's words.
	Method string
	// Inputs is a digest of everything that the objects depend on, so that equal ones are rendered once.
	Inputs string
	Input  Input
	// Anew renders although something is kept, to see whether the same comes out.
	Anew bool
	// Wake is called when a rendering is over that was answered with ErrPending. It may be called from any goroutine.
	Wake func()
}

// Kept is what a request renders to.
type Kept struct {
	Result
	// Changed are the objects that came out otherwise at an earlier rendering of equal inputs, sorted by their words. As long as
	// the earlier objects are kept, they are the ones in Result.
	Changed []ObjectName
}

// ObjectName names an object as a rendering does: one without a namespace may get the installation's.
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

// Keeper renders what it does not hold yet. What a rendering came to is kept by the digest of its inputs, failures too.
type Keeper interface {
	// Render gives the objects, ErrPending, or why there are none: what the method's Renderer returns, in a *PutOffError
	// where it is worth another try later.
	Render(ctx context.Context, request Request) (Kept, error)
}

// ErrPending says that a rendering takes longer than a pass should wait; it goes on.
var ErrPending = errors.New("the add-on is being rendered")

// PutOffError is a failure that may have been the machine's: the same inputs are rendered again, but not before a time.
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
	var template *TemplateError
	var none *NoManifestsError
	var limit *LimitError
	var chart *ChartError
	var missing *DependenciesMissingError
	return errors.As(err, &template) || errors.As(err, &none) || errors.As(err, &limit) ||
		errors.As(err, &chart) || errors.As(err, &missing)
}

// Costly says whether an error is one that most probably comes with the input and took a renderer with it. Trying again
// soon would only take more.
func Costly(err error) bool {
	_, exhausted := errors.AsType[*ExhaustedError](err)
	_, died := errors.AsType[*DiedError](err)
	_, protocol := errors.AsType[*ProtocolError](err)
	return exhausted || died || protocol
}
