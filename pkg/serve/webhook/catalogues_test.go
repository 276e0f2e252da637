package webhook_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/serve/webhook"
	"github.com/trellis-addons/trellis/test/expect"
)

const platform = "platform"

func messageOf(answer admission.Response) string {
	if answer.Result == nil {
		return ""
	}
	return answer.Result.Message
}

// authored is a catalogue of one add-on.
func authored(name string, versions ...string) *v1.AddonCatalogue {
	addon := v1.Addon{Name: "web"}
	for _, version := range versions {
		addon.Versions = append(addon.Versions, v1.AddonVersion{Version: version})
	}
	return &v1.AddonCatalogue{
		ObjectMeta: metav1.ObjectMeta{Namespace: platform, Name: name}, Spec: v1.AddonCatalogueSpec{Addons: []v1.Addon{addon}},
	}
}

// formed is a catalogue whose version has one form field.
func formed(field v1.FormField) *v1.AddonCatalogue {
	object := authored("tools", "1.0.0")
	object.Spec.Addons[0].Versions[0].Template = &v1.Template{Method: v1.MethodGoTemplate, FormSpec: []v1.FormField{field}}
	object.Spec.Addons[0].Versions[0].Source = &v1.Source{Git: &v1.GitSource{Remote: "https://git.example.com/a.git"}}
	return object
}

func valued(text string) *v1.AddonCatalogue {
	object := authored("tools", "1.0.0")
	object.Spec.Addons[0].Versions[0].Values = raw(text)
	return object
}

func templated(text string) *v1.AddonCatalogue {
	object := authored("tools", "1.0.0")
	object.Spec.Addons[0].Versions[0].ValuesTemplate = text
	return object
}

// ruled is a catalogue whose version is healthy by a rule.
func ruled(healthy string) *v1.AddonCatalogue {
	object := authored("tools", "1.0.0")
	object.Spec.Addons[0].Versions[0].Template = &v1.Template{Method: v1.MethodHelm, Health: &v1.HealthCheck{
		Rules: []v1.HealthRule{{APIVersion: "v1", Kind: "ConfigMap", Healthy: healthy}},
	}}
	object.Spec.Addons[0].Versions[0].Source = &v1.Source{Helm: &v1.HelmSource{URL: "https://charts.example.com", Chart: "web", Version: "1.0.0"}}
	return object
}

// onlyRuled is one whose version is judged by rules alone.
func onlyRuled() *v1.AddonCatalogue {
	object := ruled("true")
	object.Spec.Addons[0].Versions[0].Template.Health.Mode = v1.HealthByRules
	return object
}

func described(object *v1.AddonCatalogue) *v1.AddonCatalogue {
	object.Spec.Addons[0].Description = "another"
	return object
}

// charted is one of a chart.
func charted(url, version string) *v1.AddonCatalogue {
	object := ruled("true")
	object.Spec.Addons[0].Versions[0].Source.Helm = &v1.HelmSource{URL: url, Chart: "web", Version: version}
	return object
}

// asking is a catalogue whose version asks for objects of the core group on the hub.
func asking(resource string) *v1.AddonCatalogue {
	object := authored("tools", "1.0.0")
	object.Spec.Addons[0].Versions[0].Template = &v1.Template{Method: v1.MethodHelm, Access: []v1.Access{{
		Name: "hub", Rules: []v1.AccessRule{{APIGroups: []string{""}, Resources: []string{resource}, Verbs: []string{"get"}}},
	}}}
	object.Spec.Addons[0].Versions[0].Source = &v1.Source{Helm: &v1.HelmSource{URL: "https://charts.example.com", Chart: "web", Version: "1.0.0"}}
	return object
}

func constrained(text string) *v1.AddonCatalogue {
	object := authored("tools", "1.0.0")
	object.Spec.Addons[0].Versions[0].Constraints = &v1.Constraints{K8sVersion: v1.VersionRange(text)}
	return object
}

// many is a catalogue whose one add-on is above the limit of a merged object.
func many() *v1.AddonCatalogue {
	object := authored("tools")
	for i := range 8 {
		object.Spec.Addons[0].Versions = append(object.Spec.Addons[0].Versions, v1.AddonVersion{
			Version: fmt.Sprintf("1.%d.0", i), Values: raw(`{"a":"` + strings.Repeat("x", 200<<10) + `"}`),
		})
	}
	return object
}

// AG01: A version that asks for Secrets of the seed is refused by admission.
func TestCatalogues(t *testing.T) {
	number := func(path, standard string) v1.FormField {
		return v1.FormField{DisplayName: "N", InternalName: path, Type: v1.FormNumber, Default: &runtime.RawExtension{Raw: []byte(standard)}}
	}
	role := authored("tools", "1.0.0", "v1")
	role.Labels = map[string]string{v1.LabelRole: v1.RoleGenerated}
	leaving := authored("tools", "1.0.0", "v1")
	leaving.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	for _, test := range []struct {
		why           string
		before, after *v1.AddonCatalogue
		refused       []string
		warned        []string
	}{
		{why: "everything is right", after: authored("tools", "1.0.0", "1.1.0")},
		{why: "one version in two spellings", after: authored("tools", "1.0.0", "v1"),
			refused: []string{`AddonCatalogue "platform/tools"`, `addon "web" version "v1"`, "same version", "remove one of them"}},
		{why: "a version that reads as a range", after: authored("tools", "1.x"), refused: []string{"range"}},
		{why: "a range that the schema lets through", after: constrained(">= 1.2-01"), refused: []string{"constraints.k8sVersion"}},
		{why: "a good form", after: formed(number("a[1024].b", "1"))},
		{why: "a path of a huge index", after: formed(number("a[4294967295].b", "1")), refused: []string{"template.formSpec[a[4294967295].b]"}},
		{why: "a path too deep", after: formed(number(strings.Repeat("a.", 40)+"b", "1")), refused: []string{"32 steps"}},
		{why: "a default of another type", after: formed(number("a", `"one"`)), refused: []string{"template.formSpec[a]", "number"}},
		{why: "values too deep", after: valued(deep(33)), refused: []string{`version "1.0.0": values`}},
		{why: "a valuesTemplate", after: templated("a: {{ .Cluster.Name | quote }}")},
		{why: "a valuesTemplate that does not parse", after: templated("a: 1\n{{-  := len .Cluster.Name }}\n"),
			refused: []string{`AddonCatalogue "platform/tools"`, `addon "web" version "1.0.0": valuesTemplate: line 2: unexpected ":="`}},
		{why: "a valuesTemplate with a function that is not there", after: templated("a: {{ env `HOME` }}"),
			refused: []string{`valuesTemplate: line 1: function "env" not defined`}},
		{why: "a rule of health", after: ruled(`self.status.phase == "Ready"`)},
		{why: "a rule of health over another root", after: ruled("object.status.ready"), refused: []string{
			`AddonCatalogue "platform/tools"`, `addon "web" version "1.0.0": template.health.rules[0].healthy`, "undeclared reference to 'object'",
		}},
		{why: "rules alone", after: onlyRuled(), warned: []string{`addon "web" version "1.0.0": health mode Rules evaluates only ConfigMap`}},
		{why: "rules alone, as before", before: onlyRuled(), after: described(onlyRuled())},
		{why: "rules alone from now on", before: ruled("true"), after: onlyRuled(), warned: []string{"health mode Rules evaluates only"}},
		{why: "a range of no version", after: constrained("> 1.38, < 1.34"), warned: []string{`constraints.k8sVersion "> 1.38, < 1.34" fits no version`}},
		{why: "a chart by a range, and an index", after: charted("https://charts.example.com/index.yaml", "2.x"),
			warned: []string{"source.helm.url ends in index.yaml", `source.helm.version "2.x" reads as a range`}},
		{why: "the same as before", before: charted("https://charts.example.com", "2.x"), after: described(charted("https://charts.example.com", "2.x"))},
		{why: "ConfigMaps of the hub, to read", after: asking("configmaps")},
		{why: "Secrets of the hub", after: asking("secrets"), refused: []string{
			`AddonCatalogue "platform/tools"`, `addon "web" version "1.0.0": template.access[0].rules[0].resources[0]`, `rights for "secrets"`,
		}},
		{why: "an add-on too large by itself", after: many(), refused: []string{`"web"`, "bytes"}},
		{why: "a role is somebody else's business", after: role},
		{why: "only metadata change of one that became invalid", before: authored("tools", "1.0.0", "v1"), after: authored("tools", "1.0.0", "v1")},
		{why: "a change of one that became invalid", before: authored("tools", "1.0.0", "v1"), after: authored("tools", "1.0.0", "v1.0"),
			refused: []string{"same version"}},
		{why: "on its way out", before: authored("tools", "1.0.0"), after: leaving},
		{why: "a deletion", before: authored("tools", "1.0.0", "v1")},
	} {
		t.Run(test.why, func(t *testing.T) {
			answer := (&webhook.Catalogues{Namespace: platform}).Handle(t.Context(), question(t, catalogueOrNil(test.before), catalogueOrNil(test.after)))
			if test.refused != nil {
				expectRefused(t, answer, test.refused...)
				return
			}
			expectAdmitted(t, answer, test.warned...)
		})
	}
}

// Red when a catalogue that nobody reads is taken without a warning, in another namespace or on a seed; and when a seed that is the master
// too warns of one that is read, or any seed of what is copied there.
func TestACatalogueThatNobodyReadsIsWarnedOf(t *testing.T) {
	c := connect(t)
	const both, ignored = "platform-both", `ignored: catalogues that users write are read in namespace "platform`
	create(t, c, namespace(both), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: both, Name: v1.ConfigMapUsage}})
	master := &webhook.Catalogues{Namespace: platform}
	seed := &webhook.Catalogues{Namespace: "platform-seed", Seed: c}
	masterAndSeed := &webhook.Catalogues{Namespace: both, Seed: c}
	blind := &webhook.Catalogues{Namespace: "platform-seed", Seed: unread{c}}
	for _, test := range []struct {
		why       string
		handler   *webhook.Catalogues
		namespace string
		isUnread  bool
	}{
		{"where it is read", master, platform, false},
		{"another namespace of the master", master, "default", true},
		{"the platform namespace of a seed", seed, "platform-seed", true},
		{"another namespace of a seed", seed, "default", true},
		{"a seed that is the master", masterAndSeed, both, false},
		{"another namespace of a seed that is the master", masterAndSeed, "default", true},
		{"a seed that can't be read", blind, "platform-seed", false},
	} {
		object := authored("tools", "1.0.0")
		object.Namespace = test.namespace
		var warned []string
		if test.isUnread {
			warned = []string{ignored}
		}
		t.Run(test.why, func(t *testing.T) {
			expectAdmitted(t, test.handler.Handle(t.Context(), question(t, nil, object)), warned...)
			object.Labels = map[string]string{v1.LabelRole: v1.RoleMerged}
			expectAdmitted(t, test.handler.Handle(t.Context(), question(t, nil, object)))
		})
	}
}

// unread gets nothing.
type unread struct{ client.Reader }

func (unread) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errForbidden
}

func catalogueOrNil(object *v1.AddonCatalogue) client.Object {
	if object == nil {
		return nil
	}
	return object
}

// uncounted is what a deletion says of the age of figures.
const uncounted = "of the last minute may not be counted yet"

// TestUsageWarnings holds that who takes out what is used hears how many use it on which seed, the
// dead ones included.
func TestUsageWarnings(t *testing.T) {
	c := connect(t)
	seed := func(name string) *kkpv1.Seed {
		return &kkpv1.Seed{ObjectMeta: metav1.ObjectMeta{Namespace: platform, Name: name}}
	}
	foreign := seed("foreign")
	foreign.Labels = map[string]string{kkpv1.LabelWorkerName: "other"}
	tools, others := authored("tools", "1.0.0", "1.1.0", "1.2.0"), authored("others", "v1.1")
	book := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: platform, Name: v1.ConfigMapUsage}, Data: map[string]string{
		"north": catalogue.SeedUsage{Installations: map[catalogue.UsedVersion]int{
			{Addon: "web", Version: "1.0.0"}: 3, {Addon: "web", Version: "1.1.0"}: 7, {Addon: "web"}: 1, {Addon: "dns", Version: "1.0.0"}: 9,
		}}.Encode(),
		"south": catalogue.SeedUsage{
			LastSeen:      time.Date(2026, 11, 21, 18, 0, 0, 0, time.UTC),
			Installations: map[catalogue.UsedVersion]int{{Addon: "web", Version: "1.0.0"}: 1},
		}.Encode(),
	}}
	create(t, c, namespace(platform), seed("north"), seed("south"), seed("west"), foreign, tools, others, book)
	handler := &webhook.Catalogues{Master: c, Namespace: platform}
	unknown := "it is not known whether installations use the removed versions: seeds not counted yet: west"
	for _, test := range []struct {
		why    string
		after  *v1.AddonCatalogue
		warned []string
	}{
		{"a version is added", authored("tools", "1.0.0", "1.1.0", "1.2.0", "1.3.0"), nil},
		{"a version goes that nobody has", authored("tools", "1.0.0", "1.1.0"), []string{unknown}},
		{"a version goes that another catalogue has", authored("tools", "1.0.0", "1.2.0"), nil},
		{"a version goes that is used", authored("tools", "1.1.0", "1.2.0"), []string{
			`seed "north": 3 installations on it use the removed versions (3 of web 1.0.0); nothing is uninstalled`,
			`seed "south": 1 installation on it uses the removed versions (1 of web 1.0.0), counted before the seed became unreachable at 2026-11-21T18:00:00Z`,
			unknown,
		}},
		{"the whole catalogue goes", nil, []string{`seed "north": 3 installations`, `seed "south": 1 installation`, unknown, uncounted}},
	} {
		t.Run(test.why, func(t *testing.T) {
			if test.after != nil {
				test.after.UID = tools.UID
			}
			answer := handler.Handle(t.Context(), question(t, tools, catalogueOrNil(test.after)))
			expectAdmitted(t, answer, test.warned...)
		})
	}
	t.Run("a version goes that a catalogue has which is left out", func(t *testing.T) {
		owners := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: platform, Name: v1.ConfigMapOwners}, Data: catalogue.Owners{"web": {"tools"}}.Encode(),
		}
		create(t, c, owners)
		after := authored("tools", "1.0.0", "1.2.0")
		after.UID = tools.UID
		expectAdmitted(t, handler.Handle(t.Context(), question(t, tools, after)), `seed "north": 7 installations on it use the removed versions (7 of web 1.1.0)`, unknown)
	})
	t.Run("the only catalogue of the add-on goes", func(t *testing.T) {
		expect.Delete(t, c, others)
		answer := handler.Handle(t.Context(), question(t, tools, nil))
		expectAdmitted(t, answer,
			`seed "north": 11 installations on it use the removed versions (1 of web (no version chosen yet), 3 of web 1.0.0, 7 of web 1.1.0)`, `seed "south"`, unknown, uncounted)
	})
	t.Run("a catalogue goes that nobody is known to use", func(t *testing.T) {
		unused := authored("unused", "7.0.0")
		unused.UID, unused.Spec.Addons[0].Name = "unused", "unused"
		expectAdmitted(t, handler.Handle(t.Context(), question(t, unused, nil)), unknown, uncounted)
	})
	t.Run("the master can't be read", func(t *testing.T) {
		blind := &webhook.Catalogues{Master: unreadable{c}, Namespace: platform}
		expectAdmitted(t, blind.Handle(t.Context(), question(t, tools, nil)), "not known whether installations use")
	})
}

// TestGitCatalogueGoes holds that a git catalogue takes its children's add-ons along.
func TestGitCatalogueGoes(t *testing.T) {
	c := connect(t)
	const place = "platform-git"
	parent := &v1.AddonCatalogue{
		ObjectMeta: metav1.ObjectMeta{Namespace: place, Name: "repository"},
		Spec:       v1.AddonCatalogueSpec{Git: &v1.CatalogueGit{Remote: "https://git.example.com/a.git"}},
	}
	create(t, c, namespace(place), parent, &kkpv1.Seed{ObjectMeta: metav1.ObjectMeta{Namespace: place, Name: "north"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: place, Name: v1.ConfigMapUsage}, Data: map[string]string{
			"north": catalogue.SeedUsage{Installations: map[catalogue.UsedVersion]int{{Addon: "web", Version: "1.0.0"}: 2}}.Encode(),
		}})
	child := authored("repository-web-123456", "1.0.0")
	child.Namespace, child.Labels = place, map[string]string{v1.LabelRole: v1.RoleGenerated}
	child.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(parent, v1.GroupVersion.WithKind("AddonCatalogue"))}
	create(t, c, child)
	answer := (&webhook.Catalogues{Master: c, Namespace: place}).Handle(t.Context(), question(t, parent, nil))
	expectAdmitted(t, answer, `seed "north": 2 installations`, uncounted)
}

// bare is a shelf beside which nothing is.
type bare struct{ shelf }

func (*bare) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return apierrors.NewNotFound(corev1.Resource("configmaps"), key.Name)
}

// Red when a catalogue in git is deleted without a word since the manager has no room for what was generated from it.
func TestAGitCatalogueGoesWithChildrenThatAreNotRead(t *testing.T) {
	parent := authored("repository")
	parent.UID, parent.Spec.Addons, parent.Spec.Git = "repository", nil, &v1.CatalogueGit{Remote: "https://git.example.com/a.git"}
	child := authored("repository-web-123456", "1.0.0")
	child.Labels = map[string]string{v1.LabelRole: v1.RoleGenerated}
	child.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(parent, v1.GroupVersion.WithKind("AddonCatalogue"))}
	with := &bare{shelf{items: []v1.AddonCatalogue{*child}}}
	handler := &webhook.Catalogues{Master: with, Namespace: platform}
	expectAdmitted(t, handler.Handle(t.Context(), question(t, parent, nil)), uncounted)
	with.items[0].Annotations, with.items[0].Spec.Addons = map[string]string{v1.AnnotationStub: "1048576"}, nil
	expectAdmitted(t, handler.Handle(t.Context(), question(t, parent, nil)), "not known whether installations use")
}

// Red when nobody hears at once that an add-on is another catalogue's, or when its owner does, a Core catalogue or one that takes it over.
func TestAnAddonOfAnotherCatalogueIsWarnedOf(t *testing.T) {
	c := connect(t)
	const place = "platform-owned"
	create(t, c, namespace(place), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: place, Name: v1.ConfigMapOwners},
		Data:       catalogue.Owners{"web": {"team", "helpers"}, "db": {"other"}}.Encode(),
	})
	offered := func(name string, change ...func(*v1.AddonCatalogue)) *v1.AddonCatalogue {
		object := authored(name, "1.0.0")
		object.Namespace = place
		for _, one := range change {
			one(object)
		}
		return object
	}
	takingOver := func(addons string) func(*v1.AddonCatalogue) {
		return func(object *v1.AddonCatalogue) { object.Annotations = map[string]string{v1.AnnotationTakeOver: addons} }
	}
	reported := []string{`addon "web" belongs to catalogue "team" and is left out here until it is removed from that catalogue, or a user with verb manage-core ` +
		`sets annotation addons.kubermatic.k8c.io/take-over`}
	for _, test := range []struct {
		why           string
		before, after *v1.AddonCatalogue
		warned        []string
	}{
		{"another catalogue", nil, offered("shadow"), reported},
		{"an edit of it", offered("shadow"), offered("shadow", func(object *v1.AddonCatalogue) { object.Spec.Priority = 7 }), reported},
		{"the owner", nil, offered("team"), nil},
		{"one of its owners", nil, offered("helpers"), nil},
		{"a Core catalogue", nil, offered("core", func(object *v1.AddonCatalogue) { object.Spec.Type = v1.CatalogueCore }), nil},
		{"one that takes it over", nil, offered("shadow", takingOver("web")), nil},
		{"one that takes another one over", nil, offered("shadow", takingOver("db")), reported},
	} {
		answer := (&webhook.Catalogues{Master: c, Namespace: place}).Handle(t.Context(), question(t, catalogueOrNil(test.before), catalogueOrNil(test.after)))
		expectAdmitted(t, answer, test.warned...)
	}
	many := map[string][]string{}
	flood := offered("shadow")
	for i := range 7 {
		name := fmt.Sprintf("addon-%d", i)
		many[name] = []string{"team"}
		flood.Spec.Addons = append(flood.Spec.Addons, v1.Addon{Name: v1.AddonName(name), Versions: flood.Spec.Addons[0].Versions})
	}
	flood.Spec.Addons = flood.Spec.Addons[1:]
	kept := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: place, Name: v1.ConfigMapOwners}, Data: catalogue.Owners(many).Encode()}
	expect.Update(t, c, kept)
	answer := (&webhook.Catalogues{Master: c, Namespace: place}).Handle(t.Context(), question(t, nil, flood))
	expectAdmitted(t, answer, `addon "addon-0" belongs`, `addon "addon-1"`, `addon "addon-2"`, `addon "addon-3"`, `addon "addon-4"`,
		"more add-ons belong to other catalogues")
}
