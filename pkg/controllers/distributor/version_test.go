package distributor_test

import (
	"fmt"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
)

// TestASeedReportsItsVersionOfKKP: the distributor's own version is for Seeds that tell none. Red when it goes before what a Seed tells.
func TestASeedReportsItsVersionOfKKP(t *testing.T) {
	w := newWorld(t)
	silent, reporting := w.seed("silent", kubeconfigOf("master")), w.seed("telling", kubeconfigOf("seed"))
	before := reporting.DeepCopy()
	reporting.Status.Versions.Kubermatic = "v2.30.1"
	expect.PatchStatus(t, w.master, reporting, client.MergeFrom(before))
	w.start()
	expect.Create(w.t, w.master, w.catalogueOf("custom", map[string][]string{"prometheus": {"1.0.0"}}))
	for cluster, want := range map[string]string{"master": "v2.31.0", "seed": "v2.30.1"} {
		expect.Object(t, w.client(cluster), w.merged("prometheus"), func(object *v1.AddonCatalogue) error {
			if got := object.Annotations[v1.AnnotationKKPVersion]; got != want {
				return fmt.Errorf("Seed %s has the version %q, want %q", map[string]string{"master": silent.Name, "seed": reporting.Name}[cluster], got, want)
			}
			return nil
		})
	}
}
