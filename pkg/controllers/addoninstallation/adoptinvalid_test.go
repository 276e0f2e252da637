package addoninstallation_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// One condition reports an invalid value of adopt-managers and its correction, and nothing changes until it is
// corrected; without adopt it is not read. It fails without step adopts: the objects are adopted, and the fields of the
// tool stay permanently.
func TestManagersThatCanNotBeAreReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.publish("told", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"})
	object := w.install("told", "")
	w.expectInstalled(object, "1.0.0", "")
	w.annotate(object, kubermaticv1.AnnotationAdoptManagers, "manager,addon-installation/0123456789abcdef")
	w.publish("told", kubermaticv1.CatalogueCustom, offered{version: "2.0.0"})
	w.expectInstalled(object, "2.0.0", "") // adopt is not set
	before := w.settings(object)
	w.annotate(object, kubermaticv1.AnnotationAdopt, "true")
	w.publish("told", kubermaticv1.CatalogueCustom, offered{version: "3.0.0"})
	w.expectReady(object, kubermaticv1.ReasonAnnotationInvalid, `"addon-installation/0123456789abcdef" is an add-on installation`,
		"nothing was changed", "or remove it")
	if diff := cmp.Diff(before, w.settings(object)); diff != "" {
		t.Errorf("the object changed:\n%s", diff)
	}
	w.annotate(object, kubermaticv1.AnnotationAdoptManagers, strings.Repeat("m", 128))
	w.expectInstalled(object, "3.0.0", "")
}
