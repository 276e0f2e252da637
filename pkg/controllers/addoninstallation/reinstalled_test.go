package addoninstallation_test

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	kit "github.com/trellis-addons/trellis/test/world"
)

// TestAddonIsInstalledAgainUnderAnotherName fails if a definition that a removed installation kept is refused to the
// next one although no field is lost, or adopted although one would be; if it counts as one that existed before; and if
// the refusal does not say that the installation is gone.
func TestAddonIsInstalledAgainUnderAnotherName(t *testing.T) {
	t.Parallel()
	eachMethod(t, func(t *testing.T, w *world, method kubermaticv1.Method) {
		w.start()
		w.installAgain(method)
	})
}

// installAgain installs add-ons one after the other with the same definition which, except for the last, they keep.
func (w *world) installAgain(method kubermaticv1.Method) {
	w.t.Helper()
	schema := func(properties string) string {
		open := "{type: object, x-kubernetes-preserve-unknown-fields: true}"
		return strings.ReplaceAll(w.kindOf("Widget"), open, "{type: object, properties: {spec: {type: object, properties: "+properties+"}}}")
	}
	addons := w.addonsBy(method, map[string]string{
		"equal": schema("{size: {type: integer}}"), "more": schema("{size: {type: integer}, color: {type: string}}"),
		"less": schema("{weight: {type: integer}}"),
	})
	removing := func(version, content string, remove kubermaticv1.CRDRemove) kubermaticv1.AddonVersion {
		made := addons(version, content)
		made.Template.CRDs = &kubermaticv1.CRDPolicy{Remove: remove}
		return made
	}
	keep := func(version, content string) kubermaticv1.AddonVersion {
		return removing(version, content, kubermaticv1.CRDRemoveKeep)
	}
	used := removing("1.3.0", "more", kubermaticv1.CRDRemoveWhenUnused)
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
		{"kind", "1.3.0", ""},     // the same add-on, which removes it
	} {
		name := fmt.Sprintf("i%d", at)
		one := w.instance(step.addon, name, step.version, "")
		if step.refused == "" {
			w.expectReady(one, kubermaticv1.ReasonReady)
			w.expectOwner(name, definition, one)
			if uid != nil && definition.GetUID() != uid {
				w.t.Errorf("step %d: UID %v became %s", at, uid, definition.GetUID())
			}
			uid = definition.GetUID()
			if mark := definition.GetAnnotations()[kubermaticv1.AnnotationAdopted]; mark != "" {
				w.t.Errorf("step %d: it counts as one that was there before", at)
			}
		} else {
			w.expectReady(one, kubermaticv1.ReasonObjectExists, "was deleted", "fields that this add-on lacks", kubermaticv1.AnnotationAdopt)
		}
		w.deleteAll(one)
		expect.Gone(w.t, w.seed, one)
	}
	expect.Gone(w.t, w.seed, definition)
}

// `helm uninstall` leaves definitions: those of the folder crds/, and those that their chart keeps. It fails if the
// refusal does not say that the release is gone, or says so of an existing one; and if annotation adopt does not adopt
// them.
func TestDefinitionsThatHelmLeftAreAdopted(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ why, file, says string }{
		{"of folder crds", "crds/widget.yaml", `field manager "helm", which leaves definitions of a chart's folder crds/ behind when its release is uninstalled`},
		{"kept by the chart", "templates/widget.yaml", `, which was deleted: it has no Secret there`},
	} {
		t.Run(test.why, func(t *testing.T) {
			t.Parallel()
			w := newHookWorld(t)
			w.clock = kit.RunningClock(t)
			files := webChart("1.0.0")
			files[test.file] = keptBy(w.kindOf("Widget"))
			definition := definitionNamed("widgets." + w.group())
			w.removeAtTheEnd(definition)
			namespace := w.unique("helm")
			w.program("helm", "", "install", "before", folder(t, files), "-n", namespace, "--create-namespace")
			w.offer("after", kubermaticv1.CatalogueCustom, w.content("1.0.0", kubermaticv1.MethodHelm, "after", files))
			w.start()
			object := w.install("after", "")
			w.expectReady(object, kubermaticv1.ReasonObjectExists, "widgets."+w.group())
			if strings.Contains(fmt.Sprint(object.Status.Conditions), "it has no Secret") {
				t.Error("a release that is there counts as gone")
			}
			w.program("helm", "", "uninstall", "before", "-n", namespace)
			before := w.uids([]client.Object{definition})
			w.annotate(object, kubermaticv1.AnnotationReconcileAt, "now")
			w.expectReady(object, kubermaticv1.ReasonObjectExists, test.says, kubermaticv1.AnnotationAdopt+`: "true"`)
			w.adopt(object)
			w.ready(object)
			w.expectOwner("after", definition, object)
			if after := w.uids([]client.Object{definition}); after[0] != before[0] {
				t.Errorf("UID %s became %s", before[0], after[0])
			}
		})
	}
}
