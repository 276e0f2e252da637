package addoninstallation

import (
	"context"
	"errors"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/install/revision"
	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/serve/view/preview"
	"github.com/trellis-addons/trellis/pkg/values/templatedata"
)

// The dependencies of a Previewer. They read what the controller reads, and write nothing.

// errUnwritten ends a preview that would remove a record.
var errUnwritten = errors.New("a preview writes nothing")

// unwritten is a client that reads. Its patches have no effect: a step that completes an installation goes on with it as it would be then.
// Every other write would be one of a nil client, and end the preview in a panic.
type unwritten struct {
	client.Reader
	nothing
}

type nothing struct{ client.Client }

// Patch makes a patch that has no effect.
func (unwritten) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	return nil
}

// unsaved reads release records, past the list that installations share, since it may be ten seconds old. What a step saves is not kept:
// the steps go on with the record as it would be then.
type unsaved struct{ Records }

func (u unsaved) LoadFirst(ctx context.Context, namespace string, owner ownership.Owner) (*revision.Record, error) {
	return u.Load(ctx, namespace, owner)
}

func (unsaved) SaveIntent(context.Context, string, *revision.Record) error  { return nil }
func (unsaved) SaveApplied(context.Context, string, *revision.Record) error { return nil }
func (unsaved) Trim(context.Context, string, ownership.Owner, ...int) error { return errUnwritten }
func (unsaved) Forget(context.Context, string, ownership.Owner) error       { return errUnwritten }
func (unsaved) Reown(context.Context, string, ownership.Owner, metav1.OwnerReference) error {
	return nil
}

// unnoted reads what valuesTemplates see, without a subscription to its changes. That of the installation stays.
type unnoted struct{ SeenOfCAPI }

func (u unnoted) Seen(
	ctx context.Context, of target.Description, names templatedata.CAPINames, reader cluster.Reader,
) (target.Description, map[string]any, error) {
	own := cluster.Reader{Name: reader.Name, Changed: func() {}}
	own.Name.Name = "preview of " + reader.Name.Name // no installation has such a name
	defer u.SeenOfCAPI.Unread(own.Name)
	return u.SeenOfCAPI.Seen(ctx, of, names, own)
}

func (unnoted) Unread(types.NamespacedName) {}

// oneEach lets only one rendering of a tenant's previews go on after its preview was answered. Otherwise a caller who asks for one slow
// preview after the other fills the manager's memory with renderings that wait. What is rendered displaces few renderings of others.
type oneEach struct {
	render.Keeper
	values render.ValuesKeeper
	mutex  sync.Mutex
	// goesOn has the work that is under way, by tenant.
	goesOn map[string]string
}

// Render implements render.Keeper. A rendering of other inputs than those under way is pending.
func (o *oneEach) Render(ctx context.Context, request render.Request) (made render.Kept, err error) {
	err = o.within(ctx, request.Input.Tenant, request.Inputs, func(ctx context.Context, end func()) (err error) {
		request.Wake = end
		made, err = o.Keeper.Render(ctx, request)
		return err
	})
	return made, err
}

// RenderValues implements render.ValuesKeeper, as Render.
func (o *oneEach) RenderValues(ctx context.Context, input render.ValuesInput, _ func()) (made map[string]any, err error) {
	err = o.within(ctx, input.Tenant, input.Template, func(ctx context.Context, end func()) (err error) {
		made, err = o.values.RenderValues(ctx, input, end)
		return err
	})
	return made, err
}

// within does work of a tenant, which calls end if it is pending and has ended. A caller who leaves is waited for: the work goes on.
func (o *oneEach) within(ctx context.Context, tenant, work string, do func(ctx context.Context, end func()) error) error {
	o.mutex.Lock()
	running, isRunning := o.goesOn[tenant]
	if !isRunning {
		o.goesOn[tenant] = work
	}
	o.mutex.Unlock()
	if isRunning && running != work {
		return render.ErrPending
	}
	end := func() {
		o.mutex.Lock()
		defer o.mutex.Unlock()
		if o.goesOn[tenant] == work {
			delete(o.goesOn, tenant)
		}
	}
	err := do(render.Sparing(context.WithoutCancel(ctx)), end)
	if !errors.Is(err, render.ErrPending) {
		end()
	}
	return err
}

func rendered(objects []*unstructured.Unstructured) []preview.Rendered {
	made := make([]preview.Rendered, len(objects))
	for i, object := range objects {
		made[i].Unstructured = object
	}
	return made
}

func unstructuredOf(one preview.Rendered) []*unstructured.Unstructured {
	return []*unstructured.Unstructured{one.Unstructured}
}
