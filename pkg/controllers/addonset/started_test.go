package addonset_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
)

// TestTheCoreSetMayBeReadLast: A process that starts writes nothing before it has read all copies of sets. The test
// fails when the last one that it reads is that of the Core set, which another controller rolls out, and sets that
// were decided before it wait forever: in half of the rounds it is the last.
func TestTheCoreSetMayBeReadLast(t *testing.T) {
	w := newWorld(t, 1, 0)
	w.offers("web", "1.0.0")
	w.write(w.set("one", atOnce))
	core := w.set("core", func(of *v1.AddonSet) {
		of.Spec = v1.AddonSetSpec{Type: v1.AddonSetCore, ClusterSelector: &metav1.LabelSelector{}, Rollout: &v1.Rollout{}}
	})
	w.put(core)
	for round := range 8 {
		stop := w.start()
		expect.Eventually(t, expect.Patience, func() error {
			if len(w.installed("web")) == 0 {
				return fmt.Errorf("round %d: the set has installed nothing", round)
			}
			return nil
		})
		stop()
		for _, one := range w.installed("web") {
			if err := w.seed.Delete(t.Context(), one); client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			}
			expect.Gone(t, w.seed, one)
		}
	}
}
