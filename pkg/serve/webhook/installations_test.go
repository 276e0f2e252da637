package webhook_test

import (
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/fleet/mergedcatalogue"
	"github.com/trellis-addons/trellis/pkg/serve/webhook"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/given"
)

const merged = "merged"

// form has a field of each type, and one that is required.
func form() []v1.FormField {
	return []v1.FormField{
		{DisplayName: "Replicas", InternalName: "spec.replicas", Type: v1.FormInteger, Default: &runtime.RawExtension{Raw: []byte("1")}},
		{DisplayName: "Size", InternalName: "size", Type: v1.FormSelect, Options: []string{"small", "large"}},
		{DisplayName: "Domain", InternalName: "domain", Type: v1.FormText, Required: true},
	}
}

// web is the merged catalogue of an add-on.
func web() *v1.AddonCatalogue {
	source := &v1.Source{Git: &v1.GitSource{Remote: "https://git.example.com/a.git"}}
	with := func(fields []v1.FormField) *v1.Template {
		return &v1.Template{Method: v1.MethodGoTemplate, FormSpec: fields}
	}
	return given.Merged(merged, "", v1.Addon{Name: "web", Versions: []v1.AddonVersion{
		{Version: "2.0.0", Template: with(form()), Source: source, Constraints: &v1.Constraints{K8sVersion: ">= 1.40"}},
		{Version: "1.1.0", Template: with(form()), Source: source},
		{Version: "1.0.0", Template: with(nil), Source: source, Deprecated: "it leaks"},
		{Version: "0.9.0", Template: with(form()), Source: source, ValuesTemplate: "domain: {{ .Cluster.Name }}"},
	}})
}

// core is the merged catalogue of an add-on whose templates see the secrets of the cluster.
func core() *v1.AddonCatalogue {
	object := web()
	object.Name, object.Spec.Type = "core", v1.CatalogueCore
	version := v1.AddonVersion{
		Version: "1.0.5", Template: &v1.Template{Method: v1.MethodHelm, ClusterSecrets: true}, Source: object.Spec.Addons[0].Versions[0].Source,
	}
	object.Spec.Addons = []v1.Addon{{Name: "core", Versions: []v1.AddonVersion{version}}}
	return object
}

func installation(version, values string) *v1.AddonInstallation {
	made := given.Installation("cluster-amber", "web", "web", "web", given.In(version))
	if values != "" {
		made.Spec.Values = raw(values)
	}
	return made
}

func inKubeSystem(object *v1.AddonInstallation) *v1.AddonInstallation {
	object.Spec.TargetNamespace = "kube-system"
	return object
}

// installed is an installation whose cluster has a version of an add-on, while another is wanted.
func installed(object *v1.AddonInstallation, addon, version, target string) *v1.AddonInstallation {
	object.Status.LastApplied = &v1.AppliedState{Addon: addon, Version: version}
	object.Status.Version, object.Status.Target = version, target
	return object
}

func with(object *v1.AddonInstallation, changes ...func(*v1.AddonInstallation)) *v1.AddonInstallation {
	for _, change := range changes {
		change(object)
	}
	return object
}

func deep(levels int) string {
	return strings.Repeat(`{"a":`, levels) + "1" + strings.Repeat("}", levels)
}

func TestInstallations(t *testing.T) {
	c := connect(t)
	unlabelled := web()
	unlabelled.Name, unlabelled.Labels = "newtool", nil
	create(t, c, namespace(merged), web(), core(), unlabelled)
	ofCore := func(i *v1.AddonInstallation) { i.Spec.AddonRef.Name, i.Spec.CoreAddon = "core", true }
	from := func(i *v1.AddonInstallation) {
		i.Spec.ValuesFrom = []v1.ValuesSource{{SecretRef: &v1.KeyReference{Name: "values"}}}
	}
	template := func(text string) func(*v1.AddonInstallation) {
		return func(i *v1.AddonInstallation) { i.Spec.ValuesTemplate = text }
	}
	pinned := func(i *v1.AddonInstallation) { i.Spec.AddonRef.Digest = "sha256:meant" }
	applied := func(i *v1.AddonInstallation) {
		pinned(i)
		i.Status.LastApplied = &v1.AppliedState{Addon: "web", Version: "1.1.0", EntryDigest: "sha256:meant"}
	}
	handler := &webhook.Installations{
		Reader: c, Marks: mergedcatalogue.New(logr.Discard()), Clusters: living("1.36.3"), CatalogueNamespace: merged,
		Restrictions: catalogue.Restrictions{KubeNamespaces: true},
	}
	for _, test := range []struct {
		why           string
		before, after *v1.AddonInstallation
		refused       []string
		warned        []string
	}{
		{why: "everything is right", after: installation("1.x", `{"spec":{"replicas":2},"size":"large","domain":"a.example.com"}`)},
		{why: "a text where a number goes", after: installation("1.1.0", `{"spec":{"replicas":"two"},"domain":"a"}`),
			refused: []string{`AddonInstallation "cluster-amber/web"`, "spec.values", `version "1.1.0"`, `"Replicas" (spec.replicas)`, "whole number"}},
		{why: "a map where a number goes", after: installation("1.1.0", `{"spec":{"replicas":{"a":1}},"domain":"a"}`), refused: []string{"spec.replicas"}},
		{why: "a list on the way", after: installation("1.1.0", `{"spec":[1],"domain":"a"}`), refused: []string{"spec.replicas"}},
		{why: "no such option", after: installation("", `{"size":"huge","domain":"a"}`), refused: []string{"size", `"small"`, `"large"`}},
		{why: "where Custom add-ons don't go, of a name that can't be changed later", after: inKubeSystem(installation("1.0.0", "")),
			refused: []string{`spec.targetNamespace "kube-system"`, "--restrict-custom-addons=kube-namespaces", "another targetNamespace"}},
		{why: "where Core ones go", after: with(inKubeSystem(installation("", "")), ofCore)},
		{why: "an edit of what is there already", before: inKubeSystem(installation("0.9.0", "")), after: inKubeSystem(installation("1.0.0", "")),
			warned: []string{`spec.targetNamespace "kube-system"`, "it leaks"}},
		{why: "a required field has no value", after: installation("1.1.0", `{"size":"small"}`), refused: []string{`"Domain" (domain)`, "required"}},
		{why: "no values at all", after: installation("1.1.0", ""), refused: []string{"required"}},
		{why: "all that is wrong or missing at once", after: installation("1.1.0", `{"spec":{"replicas":"two"},"size":"huge"}`),
			refused: []string{"(spec.replicas) must be a whole number", "(size) must be one of", "(domain) is required"}},
		{why: "a misspelt key", after: installation("1.1.0", `{"domain":"a","siez":"small","spec":{"replicas":1,"x":1}}`),
			warned: []string{`spec.values: key "siez" is neither in the form nor in the catalogue's values: did you mean "size"?`, `key "spec.x"`}},
		{why: "a misspelt key beside a valuesTemplate", after: installation("0.9.0", `{"siez":"small","other":1}`),
			warned: []string{`spec.values: key "siez" is not in the form: did you mean "size"?`}},
		{why: "a key where there is no form", after: installation("1.0.0", `{"siez":1}`), warned: []string{"it leaks"}},
		{why: "required may come from elsewhere", after: with(installation("1.1.0", ""), from)},
		{why: "types count all the same", after: with(installation("1.1.0", `{"size":1}`), from), refused: []string{"size"}},
		{why: "required may come from a template", after: installation("0.9.0", "")},
		{why: "required may come from the core set", after: with(installation("1.1.0", ""), func(i *v1.AddonInstallation) { i.Spec.CoreAddon = true })},
		{why: "an explicit null is no value", after: installation("1.1.0", `{"domain":null}`), refused: []string{"required"}},
		{why: "template marks beside secrets of the cluster", after: with(installation("", `{"a":{"extra":"\u007b{ .Values.canary }}"}}`), ofCore),
			refused: []string{"spec.values", `version "1.0.5"`, `the text at "a.extra" contains template marks`}},
		{why: "and in a key", after: with(installation("1.0.5", `{"{{canary":1}`), ofCore),
			refused: []string{"a key below"}},
		{why: "template marks where there are no secrets", after: installation("1.1.0", `{"domain":"{{ canary }}"}`)},
		{why: "a valuesTemplate of its own", after: with(installation("1.1.0", ""), template("domain: {{ .Cluster.Name }}"))},
		{why: "one that does not parse", after: with(installation("1.1.0", ""), template("a: 1\n{{-  := len .Cluster.Name }}\n")),
			refused: []string{`spec.valuesTemplate: line 2: unexpected ":="`}},
		{why: "one that does not parse, of an add-on that nobody has", after: with(with(installation("", ""), template("{{ env `HOME` }}")),
			func(i *v1.AddonInstallation) { i.Spec.AddonRef.Name = "nothing" }),
			refused: []string{`spec.valuesTemplate: line 1: function "env" not defined`}},
		{why: "one that is edited", before: installation("1.0.0", ""), after: with(installation("1.0.0", ""), template("{{ end }}")),
			refused: []string{"spec.valuesTemplate"}},
		{why: "one beside secrets of the cluster", after: with(with(installation("1.0.5", ""), ofCore), template("a: {{ .Cluster.Kubeconfig }}")),
			refused: []string{`version "1.0.5"`, `spec.valuesTemplate: the text at "valuesTemplate" contains template marks`}},
		{why: "content that is gone, whatever the form of today's", after: with(installation("1.1.0", `{"size":1}`), pinned),
			warned: []string{"addonRef.digest matches neither the catalogue's version"}},
		{why: "content that only the cluster has", after: with(installation("1.1.0", `{"size":1}`), applied),
			warned: []string{"the applied revision stays, and changes wait"}},
		{why: "a reserved key", after: installation("1.0.0", `{"kkp":{}}`), refused: []string{"spec.values", "kkp"}},
		{why: "values as deep as may be", after: installation("1.0.0", deep(32)), warned: []string{"it leaks"}},
		{why: "values too deep", after: installation("1.0.0", deep(33)), refused: []string{"spec.values", "32"}},
		{why: "values too deep by far", after: installation("1.0.0", deep(5000)), refused: []string{"spec.values"}},
		{why: "values too large", after: installation("1.0.0", `{"a":"`+strings.Repeat("x", 256<<10)+`"}`), refused: []string{"spec.values"}},
		{why: "a key twice", after: installation("1.0.0", `{"a":1,"a":2}`), refused: []string{"spec.values"}},
		{why: "a range that can't be read", after: installation(">= 1.2-01", ""), refused: []string{"spec.addonRef.version"}},
		{why: "a deprecated version", after: installation("1.0.0", ""), warned: []string{`version "1.0.0" of add-on "web" is deprecated: it leaks`}},
		{why: "a version that does not fit", after: installation("2.0.0", `{"domain":"a"}`), warned: []string{"does not fit"}},
		{why: "a version that does not fit, and wrong values", after: installation("2.0.0", `{"size":"huge"}`), refused: []string{"size"}},
		{why: "what has no role is no add-on", after: with(installation("1.1.0", `{"size":1}`), func(i *v1.AddonInstallation) { i.Spec.AddonRef.Name = "newtool" }),
			warned: []string{`no catalogue has an add-on "newtool"`}},
		{why: "an unknown version", after: installation("7.0.0", `{"size":7}`), warned: []string{`no version "7.0.0"`}},
		{why: "an unknown add-on", after: with(installation("", ""), func(i *v1.AddonInstallation) { i.Spec.AddonRef.Name = "nothing" }),
			warned: []string{`no catalogue has an add-on "nothing"`}},
		{why: "lower than what is installed", before: installed(installation("1.1.0", `{"domain":"a"}`), "web", "1.1.0", "1.1.0"),
			after: installed(installation("1.0.0", ""), "web", "1.1.0", "1.1.0"), refused: []string{"spec.addonRef.version", `lower than the installed "1.1.0"`}},
		{why: "lower than what is installed, and let in", before: installed(installation("1.1.0", `{"domain":"a"}`), "web", "1.1.0", "1.1.0"),
			after: with(installed(installation("1.0.0", ""), "web", "1.1.0", "1.1.0"), func(i *v1.AddonInstallation) {
				i.Annotations = map[string]string{v1.AnnotationAllowDowngrade: "true"}
			}), warned: []string{"it leaks"}},
		{why: "lower since before, with other values", before: installed(installation("1.0.0", ""), "web", "1.1.0", "1.1.0"),
			after:  installed(installation("1.0.0", `{"domain":"a"}`), "web", "1.1.0", "1.1.0"),
			warned: []string{"it leaks", `lower than the installed "1.1.0"`}},
		{why: "lower than what is wanted and not there", before: installed(installation("1.1.0", `{"domain":"a"}`), "web", "1.0.0", "1.1.0"),
			after: installed(installation("1.0.0", ""), "web", "1.0.0", "1.1.0"), warned: []string{"it leaks"}},
		{why: "lower than another add-on's version", before: installed(installation("1.1.0", `{"domain":"a"}`), "db", "9.0.0", "1.1.0"),
			after: installed(installation("1.0.0", ""), "db", "9.0.0", "1.1.0"), warned: []string{"it leaks"}},
		{why: "a password in plain sight", after: installation("1.0.0", `{"db":{"adminPassword":"canary"},"token":"canary","apiKey":""}`),
			warned: []string{"db.adminPassword looks like a credential", "token looks like a credential", "it leaks"}},
		{why: "an edit elsewhere, with values that became wrong", before: installation("1.1.0", `{"size":7}`),
			after: with(installation("1.1.0", `{"size":7}`), func(i *v1.AddonInstallation) { i.Spec.DeletionPolicy = v1.DeletionOrphan })},
		{why: "an edit of wrong values", before: installation("1.1.0", `{"size":7}`), after: installation("1.1.0", `{"size":8}`), refused: []string{"size"}},
		{why: "on its way out", before: installation("1.1.0", ""), after: with(installation("1.1.0", `{"size":8}`), func(i *v1.AddonInstallation) {
			i.DeletionTimestamp = &metav1.Time{Time: time.Now()}
		})},
		{why: "an ordinary deletion", before: installation("1.1.0", `{"size":7}`)},
	} {
		t.Run(test.why, func(t *testing.T) {
			asked := question(t, orNil(test.before), orNil(test.after))
			answer := handler.Handle(t.Context(), asked)
			if text := strings.Join(append(answer.Warnings, messageOf(answer)), " "); strings.Contains(text, "canary") {
				t.Fatalf("the answer tells a value: %s", text)
			}
			if test.refused != nil {
				expectRefused(t, answer, test.refused...)
				return
			}
			expectAdmitted(t, answer, test.warned...)
		})
	}
}

// orNil spares an interface that holds a nil pointer.
func orNil(object *v1.AddonInstallation) client.Object {
	if object == nil {
		return nil
	}
	return object
}

func TestDeletionOfCoreInstallations(t *testing.T) {
	c := connect(t)
	going := namespace("cluster-going")
	going.Finalizers = nil
	create(t, c, namespace("cluster-amber"), going)
	expect.Delete(t, c, going) // without a namespace controller it stays, terminating
	deleted := living("1.36.3")
	deleted.found.Deleted = true
	for _, test := range []struct {
		why       string
		handler   webhook.Installations
		namespace string
		user      string
		custom    bool
		// unprotected has lost the finalizer.
		unprotected bool
		refused     bool
	}{
		{why: "its cluster lives and should have it", handler: webhook.Installations{Clusters: living("1.36.3")}, refused: true},
		{why: "its cluster lives, and it is out of the set", handler: webhook.Installations{Clusters: living("1.36.3")}, unprotected: true},
		{why: "its cluster is being deleted", handler: webhook.Installations{Clusters: deleted}},
		{why: "its cluster is not known: the finalizer holds", handler: webhook.Installations{Clusters: clusters{err: errNoCluster}}},
		{why: "its namespace is being deleted", handler: webhook.Installations{Clusters: living("1.36.3")}, namespace: "cluster-going"},
		{why: "its namespace is gone", handler: webhook.Installations{Clusters: living("1.36.3")}, namespace: "cluster-gone"},
		{why: "the cluster itself deletes it", handler: webhook.Installations{Clusters: living("1.36.3")}, user: webhook.Cleaners()[0]},
		{why: "it is no core installation", handler: webhook.Installations{Clusters: living("1.36.3")}, custom: true},
	} {
		t.Run(test.why, func(t *testing.T) {
			object := installation("1.1.0", "")
			object.Spec.CoreAddon = !test.custom
			if !test.unprotected {
				object.Finalizers = []string{"kubermatic.k8c.io/core-addon-protection"}
			}
			if test.namespace != "" {
				object.Namespace = test.namespace
			}
			asked := question(t, object, nil)
			if test.user != "" {
				asked.UserInfo.Username = test.user
			}
			test.handler.Reader = c
			answer := test.handler.Handle(t.Context(), asked)
			if test.refused {
				expectRefused(t, answer, `AddonInstallation "cluster-amber/web"`, `cluster "amber"`, "custom-core-addons")
				return
			}
			expectAdmitted(t, answer)
		})
	}
}

// TestForeignBytes holds that what is no object of the kind is refused without telling it.
func TestForeignBytes(t *testing.T) {
	handler := &webhook.Installations{}
	asked := question(t, nil, installation("", ""))
	asked.Object = runtime.RawExtension{Raw: []byte(`{"spec":{"paused":"canary"}}`)}
	answer := handler.Handle(t.Context(), asked)
	expectRefused(t, answer, "fields of its kind")
	if strings.Contains(messageOf(answer), "canary") {
		t.Errorf("the refusal tells what was sent: %s", messageOf(answer))
	}
}
