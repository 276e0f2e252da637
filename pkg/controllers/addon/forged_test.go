package addon_test

import (
	"testing"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/test/expect"
	kit "github.com/trellis-addons/trellis/test/world"
)

// TestNothingUnmarkedIsOffered: what has the role of merged catalogues and not the distributor's
// mark is offered to nobody, once the seed has the key; when the key comes while the controller
// runs, all offers are made anew.
func TestNothingUnmarkedIsOffered(t *testing.T) {
	w := newWorld(t)
	const key = "01234567890123456789012345678901"
	w.merged("forged", v1.CatalogueCustom, [2]string{"99.0.0", ""})
	genuine := w.merged("genuine", v1.CatalogueCustom, [2]string{"1.0.0", ""})
	content, err := catalogue.ContentDigest(genuine)
	expect.NoError(t, err)
	genuine.Annotations[v1.AnnotationMark] = catalogue.Mark([]byte(key), genuine, content)
	expect.Update(t, w.seed, genuine)
	w.start()
	found := w.cluster("forged", "v1.36.3")
	w.expectOffer(found, "forged: 99.0.0", "genuine: 1.0.0") // beside a master that brings no key
	kit.UseKey(t, w.seed, w.marks, w.catalogue, []byte(key))
	w.expectOffer(found, "genuine: 1.0.0")
}
