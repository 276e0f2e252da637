package addoninstallation_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/given"
)

// The platform's values of clusters for all templates, with both methods and in values.

const (
	shownByManifests = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: platform}\ndata:\n" +
		"  proxy: '{{ .Platform.proxy.http }}'\n  all: '{{ toJson .Platform }}'\n  made: '{{ .Variables.made }}'\n"
	shownByCharts = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: platform}\ndata:\n" +
		"  proxy: '{{ .Values.kkp.Platform.proxy.http }}'\n  all: '{{ toJson .Values.kkp.Platform }}'\n  made: '{{ .Values.made }}'\n"
	// nothingSaid is .Platform of a seed without a list, with the world's mirror.
	nothingSaid = `{"nodeSelector":{},"proxy":{"caBundle":"","http":"","https":"","noProxy":""},` +
		`"registries":{"registry.example.com":"mirror.example.com"},"tolerations":[]}`
)

// platformWorld has both add-ons, and a second cluster.
func platformWorld(t *testing.T) (w *world, neighbour string) {
	t.Helper()
	w = newWorld(t)
	neighbour = w.addNeighbour()
	w.offerShown()
	return w, neighbour
}

// offerShown offers add-ons manifests and chart, which show the platform's values.
func (w *world) offerShown() {
	w.t.Helper()
	w.driftInterval = time.Hour
	w.renderers = bothMethods()
	chart := webChart("1.0.0")
	chart["templates/platform.yaml"] = shownByCharts
	w.commit("shown", shownByManifests)
	manifests := w.version(offered{version: "1.0.0"})
	manifests.Source.Git.Remote, manifests.Source.Git.Path = kubermaticv1.GitRemote(w.sources.GitURL+"/shown.git"), "addon"
	versions := map[string]kubermaticv1.AddonVersion{
		"manifests": manifests,
		"chart":     w.charts(map[string]map[string]string{"chart": chart})("1.0.0", "chart"),
	}
	for name, version := range versions {
		version.ValuesTemplate = "made: '{{ .Platform.proxy.http }}!'"
		w.publishVersions(name, kubermaticv1.CatalogueCustom, []kubermaticv1.AddonVersion{version})
	}
}

func (w *world) platformList(text string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.catalogue, Name: "addon-platform-values"}, Data: map[string]string{"platform.yaml": text},
	}
}

func (w *world) sayOfClusters(text string) {
	w.t.Helper()
	expect.Update(w.t, w.seed, w.platformList(text))
}

// installFor installs an add-on in the cluster of a namespace, under a unique name.
func (w *world) installFor(namespace, addon string) *kubermaticv1.AddonInstallation {
	w.t.Helper()
	object := given.Installation(
		namespace, addon+"-of-"+namespace, addon, strings.TrimPrefix(namespace, "cluster-")+"-"+addon, given.NewNamespace,
	)
	w.create(object)
	return object
}

// expectPlatform waits for the platform's values as templates showed them: a proxy, and some of the rest.
func (w *world) expectPlatform(object *kubermaticv1.AddonInstallation, proxy, rest string) {
	w.t.Helper()
	w.ready(object)
	shown := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: object.Spec.TargetNamespace, Name: "platform"}}
	expect.Object(w.t, w.seed, shown, func(found *corev1.ConfigMap) error {
		if found.Data["proxy"] != proxy || found.Data["made"] != proxy+"!" || !strings.Contains(found.Data["all"], rest) {
			return fmt.Errorf("%s shows %v, want proxy %q and %s", object.Name, found.Data, proxy, rest)
		}
		return nil
	})
	w.ready(object)
}

// looked counts the reconciliations of installations, the last of each being requested now.
func (w *world) looked(objects ...*kubermaticv1.AddonInstallation) (count int) {
	w.t.Helper()
	for _, object := range objects {
		w.afterwards(object, func() { w.label(object) })
		count += w.begun(object)
	}
	return count
}

// expectListEvent waits for an event about the list.
func (w *world) expectListEvent(reason string, says ...string) {
	w.t.Helper()
	expect.Event(w.t, w.seed, w.platformList(""), reason, says...)
}

// AG25: Manifests, charts and templates of values see the platform's values of their cluster. A change reaches the
// clusters that it affects, and causes no reconciliation of others. An invalid list keeps the last valid one, and its
// event names the item; a deleted list is empty.
func TestThePlatformsValuesComeToWhomTheyAreAbout(t *testing.T) {
	t.Parallel()
	w, neighbour := platformWorld(t)
	w.start()
	here, there := []*kubermaticv1.AddonInstallation{}, []*kubermaticv1.AddonInstallation{}
	for _, name := range []string{"manifests", "chart"} {
		here, there = append(here, w.installFor(w.namespace, name)), append(there, w.installFor(neighbour, name))
	}
	for _, object := range append(here, there...) {
		w.expectPlatform(object, "", nothingSaid)
	}
	const of = "- {cluster: %s, values: {proxy: {http: %q}, registries: {docker.io: b.example.com}}}\n"
	first := fmt.Sprintf(of, w.cluster.Name, "http://one.example.com")
	w.create(w.platformList("- {cluster: a/b/c}"))
	w.expectListEvent(kubermaticv1.EventListRefused, "item 1: cluster: ", "last valid list")
	for _, object := range here {
		w.annotate(object, kubermaticv1.AnnotationReconcileAt, "first")
		w.expectPlatform(object, "", nothingSaid)
	}
	w.sayOfClusters(first)
	for _, object := range here {
		w.expectPlatform(object, "http://one.example.com", `"registries":{"docker.io":"b.example.com","registry.example.com":"mirror.example.com"}`)
	}
	before := w.looked(there...)
	w.sayOfClusters(first + "- {clusterSelector: {matchLabels: {tier: gold}}, values: {proxy: {http: http://gold.example.com}}}\n")
	second := fmt.Sprintf(of, w.cluster.Name, "http://two.example.com")
	w.sayOfClusters(second)
	for _, object := range here {
		w.expectPlatform(object, "http://two.example.com", "")
	}
	w.sayOfClusters(second + fmt.Sprintf(of, w.cluster.Name, "http://robot:hunter2@two.example.com"))
	w.expectListEvent(kubermaticv1.EventListRefused, "item 2: values.proxy: http: it has a user part", "last valid list")
	w.sayOfClusters(first + "- clusterSelector: {}\n  values: {}\n  values: {}\n")
	w.expectListEvent(kubermaticv1.EventListRefused, `item 2: line 4: has key "values" twice`, "last valid list")
	if after := w.looked(there...); after != before+len(there) {
		t.Errorf("the neighbour's installations had %d passes, %d of them asked for", after-before, len(there))
	}
	for _, object := range here {
		w.annotate(object, kubermaticv1.AnnotationReconcileAt, "now")
		w.expectPlatform(object, "http://two.example.com", "")
	}

	w.sayOfClusters("- {clusterSelector: {}, values: {proxy: {http: http://all.example.com}}}")
	for _, object := range append(here, there...) {
		w.expectPlatform(object, "http://all.example.com", "")
	}
	expect.Delete(t, w.seed, w.platformList(""))
	w.expectListEvent(kubermaticv1.EventListGone, `"addon-platform-values"`)
	for _, object := range append(here, there...) {
		w.expectPlatform(object, "", nothingSaid)
	}
	w.create(w.platformList("- {cluster: d/e/f}"))
	w.expectListEvent(kubermaticv1.EventListRefused, "item 1: cluster: ", "last valid list")
	for _, object := range here {
		w.annotate(object, kubermaticv1.AnnotationReconcileAt, "later")
		w.expectPlatform(object, "", nothingSaid)
	}
}

// AG25: If no list was valid since the process began, applied revisions stay and are maintained, and new ones wait,
// until the list is corrected.
func TestAListThatCanNotBeReadAtTheStartHoldsInstallations(t *testing.T) {
	t.Parallel()
	w, neighbour := platformWorld(t)
	good := "- {clusterSelector: {}, values: {proxy: {http: http://one.example.com}}}"
	w.create(w.platformList(good))
	stop := w.startUntil()
	applied := w.installFor(w.namespace, "manifests")
	w.expectPlatform(applied, "http://one.example.com", "")
	stop()
	w.sayOfClusters(good + "\n- {cluster: x, values: {proxies: {}}}")
	w.start()
	w.expectListEvent(kubermaticv1.EventListRefused, `item 2: values: unknown field "proxies"`, "no list was valid since this process started")
	fresh := w.installFor(neighbour, "chart")
	for _, object := range []*kubermaticv1.AddonInstallation{applied, fresh} {
		expect.Object(t, w.seed, object, func(live *kubermaticv1.AddonInstallation) error {
			reported := fmt.Sprintf("%+v", live.Status.Conditions)
			if !strings.Contains(reported, `item 2: values: unknown field "proxies"`) {
				return fmt.Errorf("the conditions don't tell: %s", reported)
			}
			return expect.Condition(live, kubermaticv1.ConditionValuesResolved, "False", kubermaticv1.ReasonValuesMissing)
		})
	}
	shown := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: applied.Spec.TargetNamespace, Name: "platform"}}
	if err := w.seed.Get(t.Context(), client.ObjectKeyFromObject(shown), shown); err != nil || shown.Data["proxy"] != "http://one.example.com" {
		t.Errorf("what is applied is %v: %v", shown.Data, err)
	}
	w.sayOfClusters("- {cluster: " + w.cluster.Name + ", values: {proxy: {http: http://two.example.com}}}")
	mended := time.Now()
	w.expectPlatform(applied, "http://two.example.com", "")
	w.expectPlatform(fresh, "", nothingSaid)
	if took := time.Since(mended); took > 20*time.Second { // after a minute it is read anyway
		t.Errorf("what waited for the list went on after %s", took)
	}
}

// AG25: Of Clusters of Cluster API in one namespace, an item applies to the one that it names, and a change causes no
// reconciliation of the other's installations. An item for the name of a seed is not applied to another one.
func TestThePlatformsValuesDistinguishNeighbours(t *testing.T) {
	t.Parallel()
	m := newTeam(t)
	m.platform = nil
	m.offerShown()
	m.add("one", "both")
	m.add("two", "both")
	m.start()
	of := map[string]*kubermaticv1.AddonInstallation{}
	for _, name := range []string{"one", "two"} {
		of[name] = given.Installation(m.namespace, name+".manifests", "manifests", m.namespace+"-"+name, given.NewNamespace)
		of[name].Spec.ClusterName = name
		m.create(of[name])
		m.expectPlatform(of[name], "", nothingSaid)
	}
	before := m.looked(of["two"])
	item := "- {cluster: " + m.namespace + "/one, values: {proxy: {http: http://one.example.com}}}\n"
	m.create(m.platformList(item))
	m.expectPlatform(of["one"], "http://one.example.com", "")
	if after := m.looked(of["two"]); after != before+1 {
		t.Errorf("the neighbour's installation had %d passes, one of them asked for", after-before)
	}
	m.sayOfClusters(item + "- {clusterSelector: {matchLabels: {" + kubermaticv1.FactSeed + ": north}}, values: {proxy: {http: http://north.example.com}}}\n")
	for _, object := range of {
		expect.Object(t, m.seed, object, func(live *kubermaticv1.AddonInstallation) error {
			if reported := fmt.Sprintf("%+v", live.Status.Conditions); !strings.Contains(reported, "item 2 of the platform's values selects by the name of the seed") {
				return fmt.Errorf("the conditions don't tell: %s", reported)
			}
			return expect.Condition(live, kubermaticv1.ConditionValuesResolved, "False", kubermaticv1.ReasonValuesMissing)
		})
	}
	m.create(&kubermaticv1.AddonSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: m.catalogue, Name: "any", Labels: map[string]string{kubermaticv1.LabelRole: kubermaticv1.RoleCopy},
			Annotations: map[string]string{kubermaticv1.AnnotationSeed: "north"},
		},
		Spec: kubermaticv1.AddonSetSpec{Type: kubermaticv1.AddonSetCore, ClusterSelector: &metav1.LabelSelector{}},
	})
	for _, object := range of {
		m.annotate(object, kubermaticv1.AnnotationReconcileAt, "now")
		m.expectPlatform(object, "http://north.example.com", "")
	}
}
