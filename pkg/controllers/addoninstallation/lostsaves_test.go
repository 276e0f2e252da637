package addoninstallation_test

import (
	"context"
	"sync/atomic"
	"testing"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/controllers/addoninstallation"
	"github.com/trellis-addons/trellis/pkg/install/revision"
	kit "github.com/trellis-addons/trellis/test/world"
)

// forgetful loses every second save, before it is written.
type forgetful struct {
	addoninstallation.Records
	count atomic.Int32
}

func (f *forgetful) SaveIntent(ctx context.Context, namespace string, record *revision.Record) error {
	if f.count.Add(1)%2 == 0 {
		return errLost
	}
	return f.Records.SaveIntent(ctx, namespace, record)
}

func (f *forgetful) SaveApplied(ctx context.Context, namespace string, record *revision.Record) error {
	if f.count.Add(1)%2 == 0 {
		return errLost
	}
	return f.Records.SaveApplied(ctx, namespace, record)
}

// TestSavesOfHooksMayBeLost fails if a reconciliation uses the record after a lost save of the state of hooks: before
// the rollout is complete, once it is recorded as applied, or once the objects' health is known.
func TestSavesOfHooksMayBeLost(t *testing.T) {
	t.Parallel()
	for name, waits := range map[string]bool{"plain": false, "atomic": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newHookWorld(t)
			w.clock = kit.RunningClock(t)
			saves := &forgetful{}
			w.records = func(records addoninstallation.Records) addoninstallation.Records {
				saves.Records = records
				return saves
			}
			w.start()
			hook := func(name, event string) string {
				return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", annotations: {helm.sh/hook: " + event + "}}\n"
			}
			w.publishChart("hooked", "hooked", func(version *kubermaticv1.AddonVersion) { version.Template.Atomic = waits }, map[string]string{
				"settings": settings, "before": hook("before", "pre-install"), "after": hook("after", "post-install"),
			})
			object := w.install("hooked", "")
			w.hurry(20, func() { w.ready(object) }) // a lost save is retried after a pause, which grows
			if saves := saves.count.Load(); saves < 4 {
				t.Errorf("of %d saves every second one was lost", saves)
			}
		})
	}
}
