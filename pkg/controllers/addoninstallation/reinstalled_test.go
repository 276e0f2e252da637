package addoninstallation_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	kit "github.com/trellis-addons/trellis/test/world"
)

// Red when a definition that a removed installation kept is refused to the next one although nothing is lost, or taken from others where
// something would be; when it counts as one that was there before; and when the refusal does not say that the installation is gone.
func TestAddonIsInstalledAgainUnderAnotherName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.clock, w.driftInterval = kit.RunningClock(t), 3*time.Second
	w.start()
	schema := func(properties string) string {
		open := "{type: object, x-kubernetes-preserve-unknown-fields: true}"
		return strings.ReplaceAll(w.kindOf("Widget"), open, "{type: object, properties: {spec: {type: object, properties: "+properties+"}}}")
	}
	addons := w.addons(map[string]string{
		"equal": schema("{size: {type: integer}}"), "more": schema("{size: {type: integer}, color: {type: string}}"),
		"less": schema("{weight: {type: integer}}"),
	})
	keep := func(version, content string) kubermaticv1.AddonVersion {
		made := addons(version, content)
		made.Template.CRDs = &kubermaticv1.CRDPolicy{Remove: kubermaticv1.CRDRemoveKeep}
		return made
	}
	used := addons("1.3.0", "more")
	w.offer("kind", kubermaticv1.CatalogueCustom, keep("1.0.0", "equal"), keep("1.1.0", "more"), keep("1.2.0", "less"), used)
	w.offer("also", kubermaticv1.CatalogueCustom, keep("1.0.0", "equal"), keep("1.1.0", "more"), keep("1.2.0", "less"))
	definition := definitionNamed("widgets." + w.group())
	var uid any
	for at, step := range []struct{ addon, version, refused string }{
		{"kind", "1.0.0", ""},
		{"kind", "1.0.0", ""},     // the same
		{"also", "1.0.0", ""},     // another add-on with the same content
		{"kind", "1.1.0", ""},     // one that has more
		{"also", "1.0.0", "gone"}, // another add-on with less
		{"kind", "1.2.0", ""},     // the same add-on with less, by the mark
		{"also", "1.1.0", "gone"}, // another add-on with other fields
		{"kind", "1.3.0", ""},     // the same, which removes it
	} {
		name := fmt.Sprintf("i%d", at)
		one := w.instance(step.addon, name, step.version, "")
		if step.refused == "" {
			w.expectReady(one, kubermaticv1.ReasonReady)
			w.expectOwner(name, definition, one)
			if uid != nil && definition.GetUID() != uid {
				t.Errorf("step %d: UID %v became %s", at, uid, definition.GetUID())
			}
			uid = definition.GetUID()
			if mark := definition.GetAnnotations()[kubermaticv1.AnnotationAdopted]; mark != "" {
				t.Errorf("step %d: it counts as one that was there before", at)
			}
		} else {
			w.expectReady(one, kubermaticv1.ReasonObjectExists, "is gone", "versions or fields that this add-on lacks", kubermaticv1.AnnotationAdopt)
		}
		w.deleteAll(one)
		expect.Gone(t, w.seed, one)
	}
	expect.Gone(t, w.seed, definition)
}
