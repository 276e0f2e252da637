package addoninstallation_test

import (
	"context"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/install/revision"
)

// faster is a client that deletes an installation of that name before its first patch, as another client could.
type faster struct {
	client.Client
	name    string
	deleted chan<- error
}

func (f *faster) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	if object.GetName() == f.name && len(object.GetFinalizers()) > 0 && f.deleted != nil {
		f.deleted <- f.Delete(ctx, object.DeepCopyObject().(client.Object))
		f.deleted = nil
	}
	return f.Client.Patch(ctx, object, patch, options...)
}

// An installation that is deleted before it has its finalizer leaves nothing: no later reconciliation would remove it.
// It fails if a reconciliation continues although the finalizer found no object.
func TestInstallationThatGoesBeforeItsFinalizerLeavesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.concurrency = 1 // the second reconciliation begins when the first is over
	deleted := make(chan error, 1)
	w.client = func(c client.Client) client.Client { return &faster{Client: c, name: "brief", deleted: deleted} }
	w.start()
	for _, addon := range []string{"first", "brief", "next"} {
		w.publish(addon, kubermaticv1.CatalogueCustom, offered{version: "1.0.0"})
	}
	w.expectReady(w.install("first", "1.0.0"), kubermaticv1.ReasonReady) // the user cluster is connected
	w.install("brief", "1.0.0")
	if err := <-deleted; err != nil {
		t.Fatal(err)
	}
	w.expectReady(w.install("next", "1.0.0"), kubermaticv1.ReasonReady)
	for _, record := range w.recordSecrets() {
		if name := record.Labels[revision.LabelName]; name == "brief" {
			t.Errorf("there is record %q of installation %q, which is gone", record.Name, name)
		}
	}
}
