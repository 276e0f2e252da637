package addoninstallation_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/given"
	kit "github.com/trellis-addons/trellis/test/world"
)

// markWith gives the seed a key, which the controller then requires of merged catalogues.
func (w *world) markWith(key []byte) {
	w.t.Helper()
	kit.UseKey(w.t, w.seed, w.marks, w.catalogue, key)
}

// mark adds the distributor's mark to a published catalogue, after a change.
func (w *world) mark(name string, key []byte, change func(*kubermaticv1.AddonCatalogue)) {
	w.t.Helper()
	object := &kubermaticv1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Namespace: w.catalogue, Name: name}}
	expect.Read(w.t, w.seed, object)
	change(object)
	content, err := catalogue.ContentDigest(object)
	expect.NoError(w.t, err)
	object.Annotations[kubermaticv1.AnnotationMark] = catalogue.Mark(key, object, content)
	expect.Update(w.t, w.seed, object)
}

func nothing(*kubermaticv1.AddonCatalogue) {}

// TestNothingUnmarkedIsInstalled: only objects in the catalogue namespace that the distributor wrote are used: not an
// object without the role, not one with the role and without a mark, not an edited one. Installed objects stay
// unchanged.
func TestNothingUnmarkedIsInstalled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.publish("unlabelled", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"})
	w.mark("unlabelled", []byte("no matter"), func(object *kubermaticv1.AddonCatalogue) { object.Labels = nil })
	const key = "01234567890123456789012345678901"
	w.markWith([]byte(key))
	w.start()
	unknown := func(name string) {
		object := w.install(name, "")
		w.expectChoice(object, kubermaticv1.ReasonAddonUnknown, "", "",
			fmt.Sprintf("add-on %q", name), fmt.Sprintf("AddonCatalogue %q", kubermaticv1.AvailableCatalogue))
	}
	unknown("unlabelled")
	w.publish("forged", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"})
	unknown("forged")
	w.publish("otherkey", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"})
	w.mark("otherkey", []byte("98765432109876543210987654321098"), nothing)
	unknown("otherkey")

	w.publish("genuine", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"})
	w.mark("genuine", []byte(key), nothing)
	genuine := w.install("genuine", "")
	w.expectInstalled(genuine, "1.0.0", "")
	w.publish("genuine", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"}, offered{version: "99.0.0"}) // without its mark
	w.expectChoice(genuine, kubermaticv1.ReasonWithdrawn, "1.0.0", "", `add-on "genuine" was removed`, `"1.0.0" stays installed`)
	w.mark("genuine", []byte(key), nothing)
	w.expectInstalled(genuine, "99.0.0", "")

	// The key is removed: the role counts again, and all installations are reconciled.
	w.marks.Forget()
	forged := &kubermaticv1.AddonInstallation{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "forged"}}
	w.expectInstalled(forged, "1.0.0", "")
}

// TestCoreInstallationsGoBack: a version of a core add-on that was hijacked, or withdrawn, is replaced by the
// platform's own in one step, in every cluster, without an annotation on each installation; installations of Custom
// catalogues follow their own annotation.
func TestCoreInstallationsGoBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	install := func(name string, core bool) *kubermaticv1.AddonInstallation {
		object := given.Installation(w.namespace, name, name, w.unique(name), given.NewNamespace)
		object.Spec.CoreAddon = core
		w.create(object)
		return object
	}
	leave := func(object *kubermaticv1.AddonCatalogue) {
		object.Annotations[kubermaticv1.AnnotationLeftVersions] = `["99.0.0"]`
	}
	w.publish("hijacked", kubermaticv1.CatalogueCore, offered{version: "1.0.0"}, offered{version: "99.0.0"})
	w.publish("withdrawn", kubermaticv1.CatalogueCore, offered{version: "99.0.0"})
	w.publish("custom", kubermaticv1.CatalogueCustom, offered{version: "99.0.0"})
	hijacked, withdrawn, custom := install("hijacked", true), install("withdrawn", true), install("custom", false)
	for _, object := range []*kubermaticv1.AddonInstallation{hijacked, withdrawn, custom} {
		w.expectInstalled(object, "99.0.0", "")
	}
	w.publish("withdrawn", kubermaticv1.CatalogueCore, offered{version: "1.0.0"}, offered{version: "1.1.0"})
	w.publish("custom", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"})
	w.expectChoice(withdrawn, kubermaticv1.ReasonWithdrawn, "99.0.0", "",
		`version "99.0.0" of add-on "withdrawn" was removed`, "stays installed", `version "1.1.0" would fit`, isLower)
	for _, name := range []string{"hijacked", "withdrawn", "custom"} {
		w.mark(name, []byte("any"), leave)
	}
	w.expectInstalled(hijacked, "1.0.0", "")
	w.expectEvent(kubermaticv1.EventLeft, hijacked, `"99.0.0"`, `"1.0.0"`, kubermaticv1.AnnotationLeaveVersions)
	w.expectInstalled(withdrawn, "1.1.0", "")
	w.expectChoice(custom, kubermaticv1.ReasonWithdrawn, "99.0.0", "",
		`version "99.0.0" of add-on "custom" was removed`, "stays installed", `version "1.0.0" would fit`, isLower)
	// It ends automatically: no other version is downgraded.
	w.publish("hijacked", kubermaticv1.CatalogueCore, offered{version: "0.9.0"})
	w.mark("hijacked", []byte("any"), leave)
	w.expectChoice(hijacked, kubermaticv1.ReasonWithdrawn, "1.0.0", "",
		`version "1.0.0" of add-on "hijacked" was removed`, "stays installed", `version "0.9.0" would fit`, isLower)
}
