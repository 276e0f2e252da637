package coreaddon_test

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/test/expect"
	kit "github.com/trellis-addons/trellis/test/world"
)

// TestNothingUnmarkedIsACoreAddon: an object with the role of merged catalogues and without the distributor's mark
// brings no core add-on into a cluster.
func TestNothingUnmarkedIsACoreAddon(t *testing.T) {
	w := newWorld(t)
	const key = "01234567890123456789012345678901"
	kit.UseKey(t, w.seed, w.marks, w.platform, []byte(key))
	genuine := w.merged(v1.CatalogueCore, "rbac")
	content, err := catalogue.ContentDigest(genuine)
	expect.NoError(t, err)
	genuine.Annotations[v1.AnnotationMark] = catalogue.Mark([]byte(key), genuine, content)
	expect.Update(t, w.seed, genuine)
	forged := w.merged(v1.CatalogueCore, "kube-proxy")
	w.start()
	of := w.cluster("forged")
	w.exists(of, "rbac")
	w.reports(of, "4 total, 0 ready, 0 failing, 3 missing", "False CoreAddonsNotReady")
	found := installationOf(of, "kube-proxy")
	if err := w.seed.Get(t.Context(), client.ObjectKeyFromObject(found), found); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the forged one is installed: %v", err)
	}
	// Without the key, as with a master of an earlier release, it would.
	w.marks.Forget()
	w.exists(of, forged.Name)
}
