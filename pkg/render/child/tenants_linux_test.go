package child_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/render/child"
	"github.com/trellis-addons/trellis/test/rendering"
)

// tenantsSeed is the order of TestMoreTenantsThanChildren.
var tenantsSeed = flag.Uint64("tenants-seed", 1, "the order of TestMoreTenantsThanChildren")

// TestMoreTenantsThanChildren: tenants displace each other's children, renderings fail, children end on their own and
// are killed while they wait. No child is lost, none is one too many, and correct add-ons are rendered.
func TestMoreTenantsThanChildren(t *testing.T) {
	const children = 3
	before := len(childrenOf(os.Getpid()))
	pool := rendering.Pool(t, child.Options{Children: children, Renders: 7})
	order := rand.New(rand.NewPCG(*tenantsSeed, 0))
	for turn := range 60 {
		asked := input(folder())
		asked.Tenant = fmt.Sprint("cluster-", order.IntN(5))
		asked.Addon = []string{"pid", "pid", "pid", "pid", "noise", "killed"}[order.IntN(6)]
		if waiting := childrenOf(os.Getpid()); order.IntN(4) == 0 && len(waiting) > 0 {
			_ = unix.Kill(waiting[order.IntN(len(waiting))], unix.SIGKILL)
		}
		_, err := pool.Renderer(probe, child.AllFiles).Render(t.Context(), asked)
		if (err == nil) != (asked.Addon == "pid") {
			t.Errorf("-tenants-seed=%d: rendering %d, %s of %s: %v", *tenantsSeed, turn, asked.Addon, asked.Tenant, err)
		}
		if alive := len(childrenOf(os.Getpid())) - before; alive > children+1 {
			t.Fatalf("-tenants-seed=%d: %d children after %d renderings, %d are the most", *tenantsSeed, alive, turn+1, children+1)
		}
	}
}

// TestTenantsAtOnce: the same with tenants that render concurrently. The test fails with -race if the pool's state is
// not guarded.
func TestTenantsAtOnce(t *testing.T) {
	const children = 3
	before := len(childrenOf(os.Getpid()))
	pool := rendering.Pool(t, child.Options{Children: children, Renders: 5})
	var working sync.WaitGroup
	for tenant := range 5 {
		working.Go(func() {
			for turn := range 8 {
				asked := input(folder())
				asked.Tenant, asked.Addon = fmt.Sprint("cluster-", tenant), "pid"
				if (turn+tenant)%4 == 0 {
					asked.Addon = "noise"
				}
				_, err := pool.Renderer(probe, child.AllFiles).Render(t.Context(), asked)
				if (err == nil) != (asked.Addon == "pid") {
					t.Errorf("%s of %s: %v", asked.Addon, asked.Tenant, err)
				}
				if alive := len(childrenOf(os.Getpid())) - before; alive > children+1 {
					t.Errorf("%d children, %d are the most", alive, children+1)
				}
			}
		})
	}
	working.Wait()
	pool.Close()
	if left := len(childrenOf(os.Getpid())) - before; left != 0 {
		t.Errorf("%d children are left", left)
	}
}

// TestWhatARendererDiedOf: only failures that the template caused are attributed to the template.
func TestWhatARendererDiedOf(t *testing.T) {
	pool := rendering.Pool(t, small())
	for name, want := range map[string]render.DiedOf{"deep stack": ofStack, "all at once": ofMemory, "exit": ""} {
		var died *render.DiedError
		if err := probed(t, pool, name); !errors.As(err, &died) || died.Of != want {
			t.Errorf("%s: got %v, want it to have died of %q", name, err, want)
		}
	}
	var lost *render.LostError
	if err := probed(t, pool, "killed"); !errors.As(err, &lost) || render.Costly(err) {
		t.Errorf("a renderer that is killed from outside: got %v", err)
	}
	expectHarmless(t, pool)
}

func init() {
	probes["killed"] = func(context.Context, render.Input) (render.Result, error) {
		return render.Result{}, unix.Tgkill(os.Getpid(), unix.Gettid(), unix.SIGKILL)
	}
}
