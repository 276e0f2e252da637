package webhook_test

import (
	"strings"
	"testing"

	"github.com/go-logr/logr"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/fleet/mergedcatalogue"
	"github.com/trellis-addons/trellis/pkg/serve/webhook"
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
		"spec.dependsOn: the installation would depend on itself: a → b → c → a: remove one of them")
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

// Red when dependencies of a neighbour's installations close a circle: they are of another cluster, in which these are missing.
func TestNeighboursCloseNoCircle(t *testing.T) {
	c := connect(t)
	of := func(cluster, name, on string) *v1.AddonInstallation {
		return with(installation("1.0.0", `{}`), func(object *v1.AddonInstallation) {
			object.Namespace, object.Name, object.Spec.ClusterName = "team-circle", name, cluster
			object.Spec.DependsOn = []v1.InstallationName{v1.InstallationName(on)}
		})
	}
	create(t, c, namespace("team-circle"), of("two", "b", "a"))
	handler := &webhook.Installations{
		Reader: c, Marks: mergedcatalogue.New(logr.Discard()), Clusters: neighbours{}, CatalogueNamespace: merged,
	}
	if answer := handler.Handle(t.Context(), question(t, nil, of("one", "a", "b"))); !answer.Allowed {
		t.Errorf("a neighbour's dependency closes a circle: %+v", answer.Result)
	}
	if answer := handler.Handle(t.Context(), question(t, nil, of("two", "a", "b"))); answer.Allowed {
		t.Error("a circle in one of two clusters is let in")
	}
}

// Red when an installation that leaves its namespace to the catalogue is checked without it, when nobody tells that none is named, or when
// the name of the cluster is no part of the question.
func TestNamespacesOfCataloguesAreChecked(t *testing.T) {
	c := connect(t)
	create(t, c, namespace("offers"))
	handler := &webhook.Installations{
		Reader: c, Marks: mergedcatalogue.New(logr.Discard()), Clusters: neighbours{}, CatalogueNamespace: "offers",
		Restrictions: catalogue.Restrictions{KubeNamespaces: true},
	}
	asking := func(addon string) *v1.AddonInstallation {
		return with(installation("1.0.0", `{}`), func(object *v1.AddonInstallation) {
			object.Namespace, object.Spec.ClusterName, object.Spec.AddonRef.Name = "team-circle", "one", v1.AddonName(addon)
			object.Spec.TargetNamespace = ""
		})
	}
	offer := func(addon, namespace string) {
		object := web()
		object.Namespace, object.Name, object.Spec.Type = "offers", addon, v1.CatalogueCustom
		object.Spec.Addons[0].Name, object.Spec.Addons[0].TargetNamespace = v1.AddonName(addon), namespace
		create(t, c, object)
	}
	offer("into-kube", "kube-system")
	offer("into-nothing", "")
	if answer := handler.Handle(t.Context(), question(t, nil, asking("into-kube"))); answer.Allowed {
		t.Error("a namespace that the seed keeps from add-ons is let in, since the catalogue names it")
	}
	answer := handler.Handle(t.Context(), question(t, nil, asking("into-nothing")))
	if !answer.Allowed || !strings.Contains(strings.Join(answer.Warnings, " "), "spec.targetNamespace is missing") {
		t.Errorf("of a namespace that nobody names is said %q", answer.Warnings)
	}
}
