package gitcatalogue_test

import (
	"fmt"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/test/expect"
)

// Red when annotation reconcile-at in a loop has the repository looked at more often than the shortest interval allows, or when it is not
// followed afterwards.
func TestWhoAsksInALoopIsFollowedEveryTenSeconds(t *testing.T) {
	w := newWorld(t)
	first := w.commit(map[string]string{"a.yaml": file("loki", "1.0.0")})
	w.start("", "")
	object := w.catalogue("platform")
	expect.Create(w.t, w.client, object)
	w.expectAddons(object, first, "loki", "1.0.0")
	second := w.commit(map[string]string{"a.yaml": file("loki", "2.0.0")})
	w.look(object)
	w.expectAddons(object, second, "loki", "2.0.0")
	third := w.commit(map[string]string{"a.yaml": file("loki", "3.0.0")})
	looks := w.server.Count("GET", "/catalogue.git/info/refs")
	for range 5 {
		w.manager.After(func() { w.ask(object) }, "gitcatalogue", w.platform, object.Name)
	}
	w.steady(func() error {
		now := object.DeepCopy()
		if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(object), now); err != nil {
			return err
		}
		if again := w.server.Count("GET", "/catalogue.git/info/refs"); again != looks || now.Status.Revision != second {
			return fmt.Errorf("the repository was looked at %d times, and is at %s", again-looks, now.Status.Revision)
		}
		return nil
	})
	w.asking.Step(10 * time.Second)
	w.ask(object)
	w.expectAddons(object, third, "loki", "3.0.0")
}
