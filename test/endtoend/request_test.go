package endtoend_test

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/sandbox"
)

// testKilledWhileFollowing kills the seed's manager after it made the installations that a Cluster asks for, and before
// their entries are off the Cluster. It turns red when an entry is taken off before its installation is there, and when
// the next process does not know again what the killed one made.
func testKilledWhileFollowing(t *testing.T, box *sandbox.Sandbox) {
	seed, manager := box.Client(cluster.Seed), box.Manager(cluster.Seed)
	manager.Stop()
	if err := manager.Start(t.Context(), "TRELLIS_FAULT_POINT=request-made"); err != nil {
		t.Fatal(err)
	}
	doomed := manager.Process()
	asking := &kkpv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: cluster.Name}}
	names := []string{"asked-first", "asked-second"}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, kubermaticv1.AnnotationInitialInstallations, fmt.Sprintf(
		`[{"name":%q,"addonRef":{"name":"asked"},"targetNamespace":"asked"},{"name":%q,"addonRef":{"name":"asked"},"targetNamespace":"asked"}]`,
		names[0], names[1]))
	expect.Merge(t, seed, asking, patch)
	select {
	case <-doomed.Done():
	case <-time.After(5 * expect.Patience):
		t.Fatal("the manager never came to the fault point")
	}
	made := map[string]types.UID{}
	for _, name := range names {
		installation := newInstallation(name, "asked")
		expect.Read(t, seed, installation)
		made[name] = installation.UID
	}
	expect.Object(t, seed, asking, func(object *kkpv1.Cluster) error {
		if text := object.Annotations[kubermaticv1.AnnotationInitialInstallations]; text != "" {
			return fmt.Errorf("the annotation is %q", text)
		}
		return nil
	})
	for _, name := range names {
		installation := newInstallation(name, "asked")
		expect.Read(t, seed, installation)
		if installation.UID != made[name] {
			t.Errorf("installation %q was made twice", name)
		}
		expect.Delete(t, seed, installation)
		expect.Gone(t, seed, installation)
	}
}
