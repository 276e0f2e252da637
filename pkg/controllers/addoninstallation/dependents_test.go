package addoninstallation_test

import (
	"context"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// passes is a client that counts the reconciliations of installations: each begins with a read of its installation.
type runs struct {
	client.Client
	mutex sync.Mutex
	count map[string]int
}

func (p *runs) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if _, ok := object.(*kubermaticv1.AddonInstallation); ok {
		p.mutex.Lock()
		p.count[key.Name]++
		p.mutex.Unlock()
	}
	return p.Client.Get(ctx, key, object, options...)
}

func (p *runs) of(name string) int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.count[name]
}

// TestInstallationsThatShareNothingWakeNobody fails if each change of an installation of an add-on reconciles all
// others: hundreds of them would waste the processor.
func TestInstallationsThatShareNothingWakeNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.concurrency = 1 // reconciliations are in the order of their requests
	counted := &runs{count: map[string]int{}}
	w.client = func(c client.Client) client.Client {
		counted.Client = c
		return counted
	}
	w.start()
	w.publish("plain", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"}, offered{version: "2.0.0"})
	resting, busy := w.instance("plain", "resting", "1.0.0", ""), w.instance("plain", "busy", "1.0.0", "")
	w.expectReady(resting, kubermaticv1.ReasonReady)
	w.expectReady(busy, kubermaticv1.ReasonReady)
	w.want(busy, "2.0.0") // the initial reconciliations of both are over after that
	w.expectReady(busy, kubermaticv1.ReasonReady)

	before, passed := counted.of("resting"), counted.of("busy")
	for _, version := range []string{"1.0.0", "2.0.0", "1.0.0"} {
		w.edit(busy, func(object *kubermaticv1.AddonInstallation) {
			object.Spec.AddonRef.Version = version
			object.Spec.Values = &runtime.RawExtension{Raw: []byte(`{}`)}
			object.Annotations = map[string]string{kubermaticv1.AnnotationAllowDowngrade: "true"}
		})
		w.expectSpeaksOf(busy, version, version, "True")
	}
	if after := counted.of("resting"); after != before {
		t.Errorf("%d passes of the one for %d of the other, want none", after-before, counted.of("busy")-passed)
	}
}
