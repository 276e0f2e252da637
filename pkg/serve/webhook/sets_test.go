package webhook_test

import (
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/serve/webhook"
)

// setOf is a set of one item; without a name for it, one of type Core.
func setOf(namespace, name, item string) *v1.AddonSet {
	set := &v1.AddonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1.AddonSetSpec{Type: v1.AddonSetCore, ClusterSelector: &metav1.LabelSelector{}},
	}
	if item != "" {
		set.Spec.Type = v1.AddonSetCustom
		set.Spec.Addons = []v1.AddonSetItem{{
			Name: v1.AddonName(item), AddonRef: v1.AddonReference{Name: "web"}, TargetNamespace: "web",
		}}
	}
	return set
}

func changed(set *v1.AddonSet, change func(*v1.AddonSet)) *v1.AddonSet {
	made := set.DeepCopy()
	change(made)
	return made
}

func setOrNil(set *v1.AddonSet) client.Object {
	if set == nil {
		return nil
	}
	return set
}

// Each refusal is red without addonset.Validate; each that is let in is red without its exception.
func TestSets(t *testing.T) {
	right := setOf(platform, "tools", "web")
	circle := changed(right, func(set *v1.AddonSet) { set.Spec.Addons[0].DependsOn = []v1.AddonName{"web"} })
	now := metav1.Now()
	for _, test := range []struct {
		why           string
		before, after *v1.AddonSet
		words         []string
		warning       string
	}{
		{why: "a right one is made", after: right},
		{why: "a wrong one is made", after: circle, words: []string{`AddonSet "platform/tools": spec.addons: `, "cycle"}},
		{why: "a right one becomes wrong", before: right, after: circle, words: []string{"cycle"}},
		{why: "metadata of a wrong one is changed", before: circle, after: changed(circle, func(set *v1.AddonSet) {
			set.Annotations = map[string]string{v1.AnnotationConfirmDeletion: "tools"}
		})},
		{why: "a wrong one is on its way out", before: right, after: changed(circle, func(set *v1.AddonSet) { set.DeletionTimestamp = &now })},
		{why: "a wrong one is deleted", before: circle},
		{why: "a copy is made", after: changed(right, func(set *v1.AddonSet) {
			set.Namespace, set.Labels = "addon-catalogue", map[string]string{v1.LabelRole: v1.RoleCopy}
		})},
		{why: "a wrong copy is made", words: []string{`"addon-catalogue/tools"`, "cycle"}, after: changed(circle, func(set *v1.AddonSet) {
			set.Namespace, set.Labels = "addon-catalogue", map[string]string{v1.LabelRole: v1.RoleCopy}
		})},
		{why: "one is made elsewhere", after: changed(right, func(set *v1.AddonSet) { set.Namespace = "other" }),
			words: []string{`"other/tools"`, `in namespace "platform" of the master only`}},
		{why: "one that was made elsewhere is kept", before: changed(right, func(set *v1.AddonSet) { set.Namespace = "other" }),
			after: changed(right, func(set *v1.AddonSet) { set.Namespace, set.Finalizers = "other", nil })},
	} {
		t.Run(test.why, func(t *testing.T) {
			answer := (&webhook.Sets{Namespace: platform}).Handle(t.Context(), question(t, setOrNil(test.before), setOrNil(test.after)))
			switch {
			case test.words != nil:
				expectRefused(t, answer, test.words...)
			case test.warning != "":
				expectAdmitted(t, answer, test.warning)
			default:
				expectAdmitted(t, answer)
			}
		})
	}
	answer := (&webhook.Sets{}).Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: admissionv1.Create, Object: *raw(`{"spec":{"addons":"none"}}`),
	}})
	if answer.Allowed || strings.Contains(messageOf(answer), "none") {
		t.Errorf("what is no set at all: %+v", answer.Result)
	}
}

// Red without Compare in it: which of two sets counts is told the wrong way round.
func TestASecondCoreSetGetsAWarningWhichOneCounts(t *testing.T) {
	c := connect(t)
	create(t, c, namespace("core-sets"))
	create(t, c, offered("core-sets", "web", v1.CatalogueCustom), setOf("core-sets", "first", ""), setOf("core-sets", "tools", "web"))
	handler := &webhook.Sets{Master: c, Namespace: "core-sets"}
	second := setOf("core-sets", "a-second", "")
	higher := changed(second, func(set *v1.AddonSet) { set.Spec.Priority = 7 })
	expectAdmitted(t, handler.Handle(t.Context(), question(t, nil, second)), `set "first" is of type Core too: by priority, then age, only that one`)
	expectAdmitted(t, handler.Handle(t.Context(), question(t, nil, higher)), `set "first" is of type Core too: by priority, then age, only this one`)
	expectAdmitted(t, handler.Handle(t.Context(), question(t, second, higher)), "only this one is used")
	expectAdmitted(t, handler.Handle(t.Context(), question(t, nil, setOf("core-sets", "third", "web"))))
	expectAdmitted(t, handler.Handle(t.Context(), question(t, setOf("core-sets", "first", ""), changed(setOf("core-sets", "first", ""),
		func(set *v1.AddonSet) { set.Spec.Paused = true }))))
	blind := &webhook.Sets{Master: unreadable{c}, Namespace: "core-sets"}
	expectAdmitted(t, blind.Handle(t.Context(), question(t, nil, second)), "not known which other sets")
}

// Red without the limit.
func TestASetBeyondTheMostIsRefused(t *testing.T) {
	c := connect(t)
	create(t, c, namespace("many-sets"))
	create(t, c, offered("many-sets", "web", v1.CatalogueCustom))
	for i := range 100 {
		create(t, c, setOf("many-sets", fmt.Sprint("set-", i), "web"))
	}
	handler := &webhook.Sets{Master: c, Namespace: "many-sets"}
	expectRefused(t, handler.Handle(t.Context(), question(t, nil, setOf("many-sets", "one-more", "web"))), "one-more", "at most 100")
	have := setOf("many-sets", "set-7", "web")
	expectAdmitted(t, handler.Handle(t.Context(), question(t, have, changed(have, func(set *v1.AddonSet) { set.Spec.Priority = 7 }))))
}

// Red when a group that can't have a cluster is let in without a warning, or is refused.
func TestSetsAreWarnedOfGroupsThatSelectNoCluster(t *testing.T) {
	c := connect(t)
	create(t, c, namespace("group-sets"))
	create(t, c, offered("group-sets", "web", v1.CatalogueCustom))
	handler := &webhook.Sets{Master: c, Namespace: "group-sets"}
	right := setOf("group-sets", "tools", "web")
	typo := changed(right, func(set *v1.AddonSet) {
		set.Spec.Rollout = &v1.Rollout{Groups: []v1.RolloutGroup{
			{Name: "all", ClusterSelector: &metav1.LabelSelector{}}, {Name: "canary", ClusterSelector: &metav1.LabelSelector{}},
		}}
	})
	expectAdmitted(t, handler.Handle(t.Context(), question(t, nil, right)))
	expectAdmitted(t, handler.Handle(t.Context(), question(t, nil, typo)), `group "canary" selects no cluster`)
	expectAdmitted(t, handler.Handle(t.Context(), question(t, right, typo)), `group "canary" selects no cluster`)
	expectAdmitted(t, (&webhook.Sets{Namespace: "group-sets"}).Handle(t.Context(), question(t, nil, typo))) // a seed's
}

// offered is a catalogue of one add-on, with a form.
func offered(namespace, addon string, kind v1.CatalogueType) *v1.AddonCatalogue {
	made := &v1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "has-" + addon}}
	made.Spec = v1.AddonCatalogueSpec{Type: kind, Addons: []v1.Addon{{Name: v1.AddonName(addon)}}}
	for _, version := range []string{"1.9.0", "1.10.0"} {
		made.Spec.Addons[0].Versions = append(made.Spec.Addons[0].Versions, v1.AddonVersion{
			Version: version, Source: &v1.Source{Docker: &v1.ImageSource{Image: "registry.example.com/" + addon + ":" + version}},
			Template: &v1.Template{Method: v1.MethodGoTemplate, FormSpec: []v1.FormField{{
				DisplayName: "Replicas", InternalName: "replicas", Type: v1.FormNumber,
			}}},
		})
	}
	return made
}

// Red when the item of a running set that names another add-on is let in without a warning that clusters keep theirs, when what is probably
// meant does not come first, or when a set that no cluster has is warned of that.
func TestSetsAreWarnedOfItemsThatNameAnotherAddon(t *testing.T) {
	c := connect(t)
	create(t, c, namespace("renamed-sets"), offered("renamed-sets", "podinfo", v1.CatalogueCustom), offered("renamed-sets", "grafana", v1.CatalogueCustom))
	handler := &webhook.Sets{Master: c, Namespace: "renamed-sets"}
	const kept = `item "web": clusters keep add-on "podinfo", since the add-on of an item can't be changed: to install another add-on, give the item another name`
	named := func(item, addon string, selected int32) *v1.AddonSet {
		set := setOf("renamed-sets", "tools", item)
		set.Spec.Addons[0].AddonRef.Name = v1.AddonName(addon)
		set.Status.Counts = &v1.ClusterCounts{Selected: selected}
		return set
	}
	before := named("web", "podinfo", 2)
	for _, test := range []struct {
		before, after *v1.AddonSet
		want          []string
	}{
		{before, named("web", "podinf", 2), []string{`item "web": no catalogue has add-on "podinf": did you mean "podinfo"?`, kept}},
		{before, named("web", "pdoinfo", 2), []string{`did you mean "podinfo"?`, kept}},
		{before, named("web", "grafanna", 2), []string{`did you mean "grafana"?`, kept}},
		{before, named("web", "grafana", 2), []string{kept}},
		{before, named("dashboards", "grafana", 2), nil},
		{named("web", "podinfo", 0), named("web", "podinf", 0), []string{`did you mean "podinfo"?`}},
		{nil, named("web", "podinf", 0), []string{`did you mean "podinfo"?`}},
	} {
		t.Run(string(test.after.Spec.Addons[0].AddonRef.Name), func(t *testing.T) {
			expectAdmitted(t, handler.Handle(t.Context(), question(t, setOrNil(test.before), test.after)), test.want...)
		})
	}
}

// Red when a set is let in without the warnings that an installation with the same slip gets, and when one without a slip is warned of.
func TestSetsAreWarnedAsInstallationsAre(t *testing.T) {
	c := connect(t)
	create(t, c, namespace("warned-sets"))
	placed := offered("warned-sets", "placed", v1.CatalogueCustom)
	placed.Spec.Addons[0].TargetNamespace = "placed"
	fed := offered("warned-sets", "fed", v1.CatalogueCustom)
	for i := range fed.Spec.Addons[0].Versions { // its object may have any key
		fed.Spec.Addons[0].Versions[i].ValuesFrom = []v1.VersionValuesSource{{ObjectRef: &v1.ObjectReference{
			APIGroup: "example.com", Kind: "Settings", Name: "fed",
		}}}
	}
	create(t, c, offered("warned-sets", "traefik", v1.CatalogueCustom), offered("warned-sets", "canal", v1.CatalogueCore), placed, fed)
	handler := &webhook.Sets{Master: c, Namespace: "warned-sets"}
	for _, test := range []struct {
		why    string
		change func(*v1.AddonSetItem)
		want   []string
	}{
		{"no slip", func(*v1.AddonSetItem) {}, nil},
		{"an exact version", func(item *v1.AddonSetItem) { item.AddonRef.Version = "1.9.0" }, nil},
		{"a slip in the add-on", func(item *v1.AddonSetItem) { item.AddonRef.Name = "trafik" },
			[]string{`item "web": no catalogue has add-on "trafik": did you mean "traefik"?`}},
		{"an add-on that is like none", func(item *v1.AddonSetItem) { item.AddonRef.Name = "other" }, []string{`no catalogue has add-on "other"`}},
		{"a version that is not there", func(item *v1.AddonSetItem) { item.AddonRef.Version = "2.0.0" },
			[]string{`no catalogue has version "2.0.0" of add-on "traefik"; known versions: 1.9.0, 1.10.0`}},
		{"a key that is misspelt", func(item *v1.AddonSetItem) { item.Values = raw(`{"replcas": 2}`) }, []string{`did you mean "replicas"?`}},
		{"a key that an object may have", func(item *v1.AddonSetItem) { item.AddonRef.Name, item.Values = "fed", raw(`{"other": 2}`) }, nil},
		{"a credential", func(item *v1.AddonSetItem) { item.Values = raw(`{"replicas": 2, "db": {"password": "x"}}`) },
			[]string{"looks like a credential", `key "db" is neither`}},
		{"the catalogue's namespace", func(item *v1.AddonSetItem) { item.TargetNamespace, item.AddonRef.Name = "", "placed" }, nil},
	} {
		t.Run(test.why, func(t *testing.T) {
			set := setOf("warned-sets", "tools", "web")
			set.Spec.Addons[0].AddonRef.Name = "traefik"
			test.change(&set.Spec.Addons[0])
			expectAdmitted(t, handler.Handle(t.Context(), question(t, nil, set)), test.want...)
		})
	}
}

// Red when an item that no cluster can get is let in with a warning, or when an edit is refused because of an item that it leaves as it is:
// its catalogue may have changed since.
func TestItemsThatNoClusterCanGetAreRefused(t *testing.T) {
	c := connect(t)
	const place = "unmet-sets"
	create(t, c, namespace(place), offered(place, "traefik", v1.CatalogueCustom), offered(place, "canal", v1.CatalogueCore))
	handler := &webhook.Sets{Master: c, Namespace: place}
	named := func(addon, targetNamespace string, priority int32) *v1.AddonSet {
		set := setOf(place, "tools", "web")
		set.Spec.Priority = priority
		set.Spec.Addons[0].AddonRef.Name, set.Spec.Addons[0].TargetNamespace = v1.AddonName(addon), targetNamespace
		return set
	}
	const isCore, isNowhere = `add-on "canal" is of a Core catalogue: core add-ons belong to the set of type Core`,
		`it is missing, and the catalogue names none for add-on "traefik"`
	expectAdmitted(t, handler.Handle(t.Context(), question(t, nil, named("traefik", "web", 0))))
	for _, test := range []struct {
		wrong *v1.AddonSet
		words []string
	}{
		{named("canal", "web", 0), []string{`spec.addons[0] ("web").addonRef.name: `, isCore}},
		{named("traefik", "", 0), []string{`spec.addons[0] ("web").targetNamespace: `, isNowhere}},
	} {
		expectRefused(t, handler.Handle(t.Context(), question(t, nil, test.wrong)), test.words...)
		expectRefused(t, handler.Handle(t.Context(), question(t, named("traefik", "web", 0), test.wrong)), test.words...)
		later := changed(test.wrong, func(set *v1.AddonSet) { set.Spec.Priority = 7 })
		expectAdmitted(t, handler.Handle(t.Context(), question(t, test.wrong, later)), `item "web": `+test.words[1])
	}
}

// Red when an edit drops the source of an item's values without a warning, or when an edit that drops none is warned of.
func TestSetsAreWarnedOfDroppedSources(t *testing.T) {
	c := connect(t)
	const place = "source-sets"
	create(t, c, namespace(place), offered(place, "traefik", v1.CatalogueCustom))
	handler := &webhook.Sets{Master: c, Namespace: place}
	from := func(selected int32, change func(*v1.AddonSetItem)) *v1.AddonSet {
		set := setOf(place, "tools", "web")
		set.Spec.Addons[0].AddonRef.Name = "traefik"
		set.Status.Counts = &v1.ClusterCounts{Selected: selected}
		change(&set.Spec.Addons[0])
		return set
	}
	inline := func(item *v1.AddonSetItem) { item.Values = raw(`{"replicas": 2}`) }
	secret := func(item *v1.AddonSetItem) {
		item.ValuesFrom = append(item.ValuesFrom, v1.ValuesSource{SecretRef: &v1.KeyReference{Name: "a"}})
	}
	provider := func(item *v1.AddonSetItem) {
		item.ValuesFrom = append(item.ValuesFrom, v1.ValuesSource{ProviderRef: &v1.ProviderReference{APIGroup: "a.example.com", Kind: "A", Name: "a"}})
	}
	both := func(item *v1.AddonSetItem) { inline(item); secret(item) }
	none := func(*v1.AddonSetItem) {}
	for _, test := range []struct {
		why           string
		before, after *v1.AddonSet
		want          []string
	}{
		{"values for a Secret", from(2, inline), from(2, secret), []string{"no longer come from values, but from valuesFrom.secretRef: clusters"}},
		{"a Secret for a provider", from(2, secret), from(2, provider), []string{"no longer come from valuesFrom.secretRef, but from valuesFrom.providerRef"}},
		{"two sources for none", from(2, both), from(2, none), []string{"come from values, valuesFrom.secretRef, but from no source of the set"}},
		{"one more source", from(2, inline), from(2, both), nil},
		{"other values", from(2, inline), from(2, func(item *v1.AddonSetItem) { item.Values = raw(`{"replicas": 3}`) }), nil},
		{"a set that no cluster has", from(0, inline), from(0, secret), nil},
		{"a new set", nil, from(0, secret), nil},
		{"another item", from(2, inline), changed(from(2, secret), func(set *v1.AddonSet) { set.Spec.Addons[0].Name = "other" }), nil},
	} {
		t.Run(test.why, func(t *testing.T) {
			expectAdmitted(t, handler.Handle(t.Context(), question(t, setOrNil(test.before), test.after)), test.want...)
		})
	}
}
