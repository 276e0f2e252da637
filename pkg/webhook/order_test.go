package webhook_test

import (
	"testing"

	"github.com/go-logr/logr"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/mergedcatalogue"
	"github.com/trellis-addons/trellis/pkg/webhook"
)

// Red when a circle is let in (checkOrder gives nil), when what is not there is refused, or when an update that leaves dependsOn alone is.
func TestACircleIsRefusedInWords(t *testing.T) {
	c := connect(t)
	depending := func(name string, on ...v1.InstallationName) *v1.AddonInstallation {
		return with(installation("1.0.0", `{}`), func(object *v1.AddonInstallation) {
			object.Namespace, object.Name, object.Spec.DependsOn = "cluster-circle", name, on
		})
	}
	handler := &webhook.Installations{
		Reader: c, Marks: mergedcatalogue.New(logr.Discard()), Clusters: living("1.36.3"), CatalogueNamespace: merged,
	}
	create(t, c, namespace("cluster-circle"), depending("b", "c"), depending("c", "a"))
	expectRefused(t, handler.Handle(t.Context(), question(t, nil, depending("a", "x", "b"))),
		"spec.dependsOn: the installation would depend on itself: a → b → c → a: take one of them out")
	if answer := handler.Handle(t.Context(), question(t, nil, depending("a", "x"))); !answer.Allowed {
		t.Errorf("a name that is not there is refused: %+v", answer.Result)
	}
	paused := with(depending("a", "b"), func(object *v1.AddonInstallation) { object.Spec.Paused = true })
	if answer := handler.Handle(t.Context(), question(t, depending("a", "b"), paused)); !answer.Allowed {
		t.Errorf("pausing a member is refused: %+v", answer.Result)
	}
	if answer := handler.Handle(t.Context(), question(t, depending("a"), depending("a", "b"))); answer.Allowed {
		t.Error("an update that closes a circle is let in")
	}
	if answer := (&webhook.Installations{Reader: unreadable{c}, Marks: handler.Marks, Clusters: handler.Clusters}).Handle(
		t.Context(), question(t, nil, depending("a", "b"))); !answer.Allowed {
		t.Errorf("where installations can't be read it is refused: %+v", answer.Result)
	}
}
