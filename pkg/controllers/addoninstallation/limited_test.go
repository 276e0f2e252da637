package addoninstallation

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/fairqueue"
	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/render"
)

// Red when the time of a preview is a deadline: the connection of its cluster takes calls that exceed one for failures of the API server,
// and stops those of all installations.
func TestPreviewsEndAsReconciliationsDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		within, end := limitedTo(t.Context(), time.Minute)
		defer end()
		<-within.Done()
		var late *fairqueue.OverdueError
		if !errors.Is(within.Err(), context.Canceled) || !errors.As(context.Cause(within), &late) {
			t.Errorf("it ends with %v, caused by %v", within.Err(), context.Cause(within))
		}
	})
}

// slowKeeper has renderings that are pending until they are ended.
type slowKeeper struct {
	render.Keeper
	begun []string
	ends  []func()
}

func (s *slowKeeper) Render(ctx context.Context, request render.Request) (render.Kept, error) {
	if ctx.Err() != nil {
		return render.Kept{}, ctx.Err() // the rendering goes on, and nothing reports its end
	}
	s.begun, s.ends = append(s.begun, request.Inputs), append(s.ends, request.Wake)
	return render.Kept{}, render.ErrPending
}

func (s *slowKeeper) RenderValues(_ context.Context, input render.ValuesInput, wake func()) (map[string]any, error) {
	s.begun, s.ends = append(s.begun, input.Template), append(s.ends, wake)
	return nil, render.ErrPending
}

// A tenant's previews leave one rendering at a time behind, also if their callers leave. Red when a second one begins beside it (within),
// when a tenant waits for another one, and when the end of a rendering is not noted.
func TestPreviewsOfATenantLeaveOneRenderingBehind(t *testing.T) {
	slow := &slowKeeper{}
	limited := &oneEach{Keeper: slow, values: slow, goesOn: map[string]string{}}
	left, leave := context.WithCancel(t.Context())
	leave()
	ask := func(ctx context.Context, tenant, inputs string) {
		t.Helper()
		request := render.Request{Inputs: inputs, Input: render.Input{Tenant: tenant}}
		if _, err := limited.Render(ctx, request); !errors.Is(err, render.ErrPending) {
			t.Errorf("%s of %s: %v", inputs, tenant, err)
		}
	}
	ask(left, "one", "first")
	ask(t.Context(), "one", "second")
	if _, err := limited.RenderValues(t.Context(), render.ValuesInput{Tenant: "one", Template: "t"}, nil); !errors.Is(err, render.ErrPending) {
		t.Error(err)
	}
	ask(t.Context(), "one", "first")
	ask(t.Context(), "another", "third")
	slow.ends[0]()
	ask(t.Context(), "one", "second")
	if !slices.Equal(slow.begun, []string{"first", "first", "third", "second"}) {
		t.Errorf("these begin: %q", slow.begun)
	}
}

// Red when secrets of a core add-on other than its kubeconfig are not searched for in names and messages (secretLayers).
func TestNamesInPreviewsHideCredentials(t *testing.T) {
	f := &facts{}
	f.choice.Core = true
	f.choice.Version = &kubermaticv1.AddonVersion{Template: &kubermaticv1.Template{ClusterSecrets: true}}
	f.data.Credentials.Hetzner.Token = "canary-of-hetzner"
	f.data.Cluster.Kubeconfig = "canary-of-kubeconfig"
	shown := calls.MaskOf(f.secretLayers()).Text("of canary-of-hetzner and canary-of-kubeconfig")
	if strings.Contains(shown, "canary") {
		t.Errorf("it shows %q", shown)
	}
}
