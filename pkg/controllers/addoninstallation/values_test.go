package addoninstallation

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/fleet/mergedcatalogue"
	"github.com/trellis-addons/trellis/pkg/install/resolution"
	"github.com/trellis-addons/trellis/pkg/render/gotemplate"
	"github.com/trellis-addons/trellis/pkg/render/kept"
	"github.com/trellis-addons/trellis/pkg/values"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/given"
)

const (
	space         = "cluster-a"
	platformSpace = "kubermatic"
)

var backupTarget = schema.GroupKind{Group: "storage.example.com", Kind: "BackupTarget"}

// valuesWorld is a seed's API server with one cluster namespace, and the part of the controller that values need.
type valuesWorld struct {
	*testing.T
	seed       client.Client
	reconciler *Reconciler
	cluster    *kkpv1.Cluster
}

func newValuesWorld(t *testing.T) *valuesWorld {
	t.Helper()
	config := fleet.ForTest(t, fleet.ClusterOptions{Name: "seed"}).Cluster("seed").Config
	expect.NoError(t, fleet.InstallCRDs(t.Context(), config, append(fleet.CRDs(t), "../../clusters/cluster/testdata/kkp", "testdata/configs")...))
	scheme := runtime.NewScheme()
	expect.NoError(t, errors.Join(clientgoscheme.AddToScheme(scheme), kkpv1.AddToScheme(scheme), kubermaticv1.AddToScheme(scheme)))
	httpClient, err := rest.HTTPClientFor(config)
	expect.NoError(t, err)
	mapper, err := apiutil.NewDynamicRESTMapper(config, httpClient)
	expect.NoError(t, err)
	objects, err := cache.New(config, cache.Options{Scheme: scheme, Mapper: mapper, HTTPClient: httpClient})
	expect.NoError(t, err)
	seed, err := client.New(config, client.Options{Scheme: scheme, Mapper: mapper, HTTPClient: httpClient})
	expect.NoError(t, err)
	platform := cluster.NewPlatform(objects, seed, mapper, platformSpace, cluster.Extras{KKP: true, Providers: configKinds})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = objects.Start(ctx) })
	running.Go(func() { _ = platform.Start(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })

	w := &valuesWorld{T: t, seed: seed, cluster: &kkpv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "a-uid"}}}
	w.cluster.Spec.Cloud = kkpv1.CloudSpec{Datacenter: "dc-1", ProviderName: "hetzner", Hetzner: &kkpv1.TokenCloudSpec{
		CredentialsReference: &kkpv1.CredentialsReference{Namespace: platformSpace, Name: "credential-hetzner"},
	}}
	w.cluster.Status.NamespaceName, w.cluster.Status.Versions.ControlPlane = space, "1.36.3"
	w.cluster.Status.Address.AdminToken = "admin-token"
	w.reconciler = New(Dependencies{
		Client: seed, Marked: uncached{objects, seed}, Direct: seed, Values: kept.New(kept.Options{Values: gotemplate.New()}), Platform: platform,
		ClusterSecrets: cluster.NewSecrets(seed, platformSpace), InputsKey: []byte("key"), Marks: mergedcatalogue.New(logr.Discard()),
		Options: Options{CatalogueNamespace: "addon-catalogue", Variables: map[string]map[string]any{"demo": {"byFlag": "f"}}},
	})
	for _, name := range []string{space, platformSpace, "cluster-b"} {
		w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return w
}

// uncached is the cache of marked objects without a delay: reads call the API server, and return the data that the
// cache keeps.
type uncached struct {
	cache.Cache
	reader client.Reader
}

func (u uncached) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if err := u.reader.Get(ctx, key, object, options...); err != nil {
		return err
	}
	_, err := TrimMarked("addon-catalogue", sourceKinds.SecretKeys())(object)
	return err
}

func (w *valuesWorld) create(objects ...client.Object) {
	w.Helper()
	for _, object := range objects {
		expect.Create(w, w.seed, object)
	}
}

func (w *valuesWorld) secret(name, use, text string) *corev1.Secret {
	return given.MarkedSecret(use, space, name, map[string][]byte{"values.yaml": []byte(text)})
}

// pass resolves the values of an installation.
func (w *valuesWorld) pass(entry *kubermaticv1.AddonVersion, spec kubermaticv1.AddonInstallationSpec, core bool) (*facts, *loop.Outcome) {
	spec.AddonRef.Name = "demo"
	f := factsFor(&kubermaticv1.AddonInstallation{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: "demo"}, Spec: spec}, &memory{})
	f.cluster, f.choice = cluster.Describe(w.cluster), resolution.Choice{Version: entry, Core: core}
	return f, w.reconciler.resolveValues(w.Context(), f)
}

func raw(text string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(text)} }

func fromSecret(name string, optional bool) kubermaticv1.ValuesSource {
	return kubermaticv1.ValuesSource{SecretRef: &kubermaticv1.KeyReference{Name: name, Optional: optional}}
}

func fromConfigMap(name, key string) kubermaticv1.ValuesSource {
	return kubermaticv1.ValuesSource{ConfigMapRef: &kubermaticv1.KeyReference{Name: name, Key: key}}
}

func fromProvider(kind, name string) kubermaticv1.ValuesSource {
	return kubermaticv1.ValuesSource{ProviderRef: &kubermaticv1.ProviderReference{APIGroup: backupTarget.Group, Kind: kind, Name: name}}
}

func backups(name, secret string) *unstructured.Unstructured {
	made := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"secretRef": map[string]any{"name": secret}}}}
	made.SetGroupVersionKind(backupTarget.WithVersion("v1"))
	made.SetNamespace(space)
	made.SetName(name)
	return made
}

func entryWith(catalogue, template string, form ...kubermaticv1.FormField) *kubermaticv1.AddonVersion {
	return &kubermaticv1.AddonVersion{
		Values: raw(catalogue), ValuesTemplate: template,
		Template: &kubermaticv1.Template{Method: kubermaticv1.MethodGoTemplate, FormSpec: form},
	}
}

// AC06, AC07, AC09, AC10: Values beyond limits, at reserved keys or of another type are refused, and none is repeated.
// All of it runs against a real API server.
func TestResolveValues(t *testing.T) {
	w := newValuesWorld(t)
	w.create(
		w.secret("first", kubermaticv1.UseValues, "c: first\nd: first\ne: first\n"), w.secret("unmarked", "", "c: stolen"),
		w.secret("source", kubermaticv1.UseSource, "c: stolen"), w.secret("target", kubermaticv1.UseValues, "f: target\n"),
		&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: "second", Labels: map[string]string{kubermaticv1.LabelUse: kubermaticv1.UseValues}},
			Data:       map[string]string{"my.yaml": "d: second\nkept: {own: 1}\n", "bad.yaml": "kkp: {}", "deep.yaml": strings.Repeat("[", 40)},
		},
		backups("default", "target"), backups("thief", "unmarked"), backups("empty", ""),
		given.MarkedSecret(kubermaticv1.UseValues, space, "password", map[string][]byte{"plain": []byte("0123"), "binary": {0xff, 0xfe}}),
		given.Kubeconfig(space, []byte("kubeconfig")),
	)
	t.Run("layers", func(t *testing.T) { w.with(t).testLayers() })
	t.Run("providers", func(t *testing.T) { w.with(t).testProviders() })
	t.Run("large Secrets", func(t *testing.T) { w.with(t).testLargeSecrets() })
	t.Run("refused", func(t *testing.T) { w.with(t).testRefused() })
	t.Run("secrets", func(t *testing.T) { w.with(t).testAC10Secrets() })
	t.Run("misspelt keys", func(t *testing.T) { w.with(t).testMisspeltKeys() })
	t.Run("objects", func(t *testing.T) { w.with(t).testObjects() })
	t.Run("wakes", func(t *testing.T) { w.with(t).testWakes() })
}

func (w *valuesWorld) with(t *testing.T) *valuesWorld {
	copied := *w
	copied.T = t
	return &copied
}

func (w *valuesWorld) testLayers() {
	form := kubermaticv1.FormField{DisplayName: "B", InternalName: "b", Type: kubermaticv1.FormText, Default: raw(`"form"`), Required: true}
	entry := entryWith(`{"a":"catalogue","b":"catalogue","c":"catalogue","kept":{"below":true,"gone":1}}`,
		"b: template\nt: {{ .Cluster.Name }} {{ .Variables.byFlag }}\nc: template\n", form)
	f, outcome := w.pass(entry, kubermaticv1.AddonInstallationSpec{
		ValuesTemplate: "b: own {{ .Cluster.Name }}{{ .Cluster.Kubeconfig }}{{ .Cluster.Address.AdminToken }}\nc: own\ng: own\n",
		ValuesFrom: []kubermaticv1.ValuesSource{
			fromSecret("first", false), fromConfigMap("second", "my.yaml"), fromProvider("BackupTarget", "default"), fromSecret("none", true),
			{SecretRef: &kubermaticv1.KeyReference{Name: "password", Key: "plain", TargetPath: "db.password"}},
		},
		Values: raw(`{"e":"user","kept":{"gone":null}}`),
	}, false)
	if outcome != nil {
		w.Fatalf("got %#v", outcome)
	}
	want := map[string]any{
		"a": "catalogue", "b": "own a", "t": "a f", "c": "first", "d": "second", "e": "user", "f": "target", "g": "own",
		"kept": map[string]any{"below": true, "own": int64(1), "gone": nil}, "db": map[string]any{"password": "0123"},
	}
	if diff := cmp.Diff(want, f.values.Merged); diff != "" {
		w.Errorf("values (-want +got):\n%s", diff)
	}
	origins := values.Origins{
		"a": "catalogue", "b": "installation valuesTemplate", "t": "valuesTemplate", "c": "valuesFrom[0]", "d": "valuesFrom[1]", "e": "installation",
		"f": "valuesFrom[2]", "g": "installation valuesTemplate", "kept.below": "catalogue", "kept.own": "valuesFrom[1]", "kept.gone": "installation",
		"db.password": "valuesFrom[4]",
	}
	if diff := cmp.Diff(origins, f.values.Origins); diff != "" {
		w.Errorf("origins (-want +got):\n%s", diff)
	}
	w.cluster.Name = "another"
	defer func() { w.cluster.Name = "a" }()
	f, _ = w.pass(entry, kubermaticv1.AddonInstallationSpec{ValuesTemplate: "o: {{ .Cluster.Name }}"}, false)
	if f.values.Merged["t"] != "another f" || f.values.Merged["o"] != "another" || f.values.Merged["b"] != "form" {
		w.Errorf("the valuesTemplates were not rendered for the cluster's new facts: %v", f.values.Merged)
	}
}

// testProviders fails if the contract of Tanzu's providers does not hold: status.secretRef is a text, and the Secret has an owner and no label.
// It also fails if an owner gives a Secret that it does not control, or if an object that exists without its Secret counts as missing.
func (w *valuesWorld) testProviders() {
	provider := func(name string, status any) *unstructured.Unstructured {
		made := backups(name, "")
		made.Object["status"] = map[string]any{"secretRef": status}
		w.create(made)
		return made
	}
	owned := func(name string, owner *unstructured.Unstructured, isController bool) {
		secret := w.secret(name, "", "secret: "+name+"\n")
		secret.Labels = nil
		secret.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "storage.example.com/v1", Kind: "BackupTarget", Name: owner.GetName(), UID: owner.GetUID(), Controller: &isController,
		}}
		w.create(secret)
	}
	text := provider("tanzu", "tanzu-config")
	owned("tanzu-config", text, true)
	owned("other-config", provider("other", map[string]any{"name": "tanzu-config"}), false)
	provider("owner", "other-config")
	provider("odd", map[string]any{"name": "a/../b"})
	provider("number", int64(7))
	provider("early", "not-yet")
	optional := func(name string) kubermaticv1.ValuesSource {
		source := fromProvider("BackupTarget", name)
		source.ProviderRef.Optional = true
		return source
	}
	for _, test := range []struct {
		from kubermaticv1.ValuesSource
		want any
		says string
	}{
		{from: fromProvider("BackupTarget", "tanzu"), want: "tanzu-config"},
		{from: optional("tanzu"), want: "tanzu-config"},
		{from: optional("nobody")},
		{from: fromProvider("BackupTarget", "nobody"), says: "does not exist in this namespace"},
		{from: fromProvider("BackupTarget", "other"), says: `Secret "tanzu-config" has no label`},
		{from: fromProvider("BackupTarget", "owner"), says: `Secret "other-config" has no label`},
		{from: fromProvider("BackupTarget", "odd"), says: "can't be the name of a Secret"},
		{from: fromProvider("BackupTarget", "number"), says: "names no Secret"},
		{from: optional("empty"), says: "names no Secret"},
		{from: optional("early"), says: `there is no Secret "not-yet"`},
	} {
		f, outcome := w.pass(entryWith("{}", ""), kubermaticv1.AddonInstallationSpec{ValuesFrom: []kubermaticv1.ValuesSource{test.from}}, false)
		name := test.from.ProviderRef.Name
		switch {
		case test.says == "" && (outcome != nil || f.values.Merged["secret"] != test.want):
			w.Errorf("%s: got %v, %#v", name, f.values.Merged, outcome)
		case test.says != "" && (outcome == nil || outcome.Reason != "ValuesMissing" || !strings.Contains(outcome.Message, test.says)):
			w.Errorf("%s: got %#v, want ValuesMissing: %s", name, outcome, test.says)
		}
	}
	_, outcome := w.pass(entryWith("{}", ""), kubermaticv1.AddonInstallationSpec{ValuesFrom: []kubermaticv1.ValuesSource{optional("early")}}, false)
	if outcome == nil || outcome.Recheck == 0 {
		w.Errorf("no event reports a Secret without a label, and the installation is not looked at again: %#v", outcome)
	}
}

// testRefused fails if a refusal leaves a part of the values, if it names a value, or if an unmarked Secret is read.
func (w *valuesWorld) testRefused() {
	number := kubermaticv1.FormField{DisplayName: "N", InternalName: "n", Type: kubermaticv1.FormNumber}
	for _, test := range []struct {
		why, catalogue, template, own, ownTemplate string
		from                                       []kubermaticv1.ValuesSource
		reason, says                               string
	}{
		{why: "no such Secret", from: []kubermaticv1.ValuesSource{fromSecret("none", false)}, reason: "ValuesMissing", says: `spec.valuesFrom[0]: there is no Secret "none" in namespace`},
		{why: "an unmarked Secret", from: []kubermaticv1.ValuesSource{fromSecret("unmarked", false)}, reason: "ValuesMissing", says: `Secret "unmarked" has no label`},
		{why: "a source's Secret", from: []kubermaticv1.ValuesSource{fromSecret("source", false)}, reason: "ValuesMissing", says: `Secret "source" has no label`},
		{why: "a kubeconfig", from: []kubermaticv1.ValuesSource{fromSecret("internal-admin-kubeconfig", false)}, reason: "ValuesMissing", says: "has no label"},
		{why: "no such key", from: []kubermaticv1.ValuesSource{fromConfigMap("second", "")}, reason: "ValuesMissing", says: `has no key "values.yaml"`},
		{why: "a text that is none", from: []kubermaticv1.ValuesSource{{SecretRef: &kubermaticv1.KeyReference{Name: "password", Key: "binary", TargetPath: "a"}}},
			reason: "ValuesInvalid", says: `key "binary" of "password": values: is not UTF-8 text`},
		{why: "a path that can't be", from: []kubermaticv1.ValuesSource{{SecretRef: &kubermaticv1.KeyReference{Name: "password", Key: "plain", TargetPath: "a[1]"}}},
			reason: "ValuesInvalid", says: "has an index"},
		{why: "a provider's unmarked Secret", from: []kubermaticv1.ValuesSource{fromProvider("BackupTarget", "thief")}, reason: "ValuesMissing", says: "has no label"},
		{why: "a provider that is not ready", from: []kubermaticv1.ValuesSource{fromProvider("BackupTarget", "empty")}, reason: "ValuesMissing", says: "names no Secret"},
		{why: "a provider's kind that is not allowed", from: []kubermaticv1.ValuesSource{fromProvider("Secret", "x")}, reason: "ValuesMissing", says: "--provider-kinds"},
		{why: "the reserved key", own: `{"kkp":{"Cluster":"hunter2"}}`, reason: "ValuesInvalid", says: `key "kkp" is reserved`},
		{why: "the reserved key from elsewhere", from: []kubermaticv1.ValuesSource{fromConfigMap("second", "bad.yaml")}, reason: "ValuesInvalid", says: "values of valuesFrom[0]"},
		{why: "too deep", from: []kubermaticv1.ValuesSource{fromConfigMap("second", "deep.yaml")}, reason: "ValuesInvalid", says: `key "deep.yaml" of "second"`},
		{why: "too large", own: `{"a":"` + strings.Repeat("x", values.MaxBytes) + `"}`, reason: "ValuesInvalid", says: "at most 262144 are allowed"},
		{why: "too large in a Secret", from: []kubermaticv1.ValuesSource{fromSecret("huge", false)}, reason: "ValuesInvalid", says: "at most 262144 are allowed"},
		{why: "no such key in a large Secret", from: []kubermaticv1.ValuesSource{{SecretRef: &kubermaticv1.KeyReference{Name: "large", Key: "other"}}}, reason: "ValuesMissing", says: `has no key "other"`},
		{why: "another type", own: `{"n":"hunter2"}`, reason: "ValuesInvalid", says: `field "N" (n) must be a number`},
		{why: "all fields at once", own: `{"n":"hunter2","m":1}`, reason: "ValuesInvalid",
			says: `field "N" (n) must be a number; field "M" (m) must be text; field "Owner" (owner) is required and has no value`},
		{why: "an own valuesTemplate that fails", ownTemplate: `{{ fail "no" }}`, reason: "ValuesInvalid", says: "spec.valuesTemplate: "},
		{why: "an own valuesTemplate that can't be parsed", ownTemplate: `{{ fail`, reason: "ValuesInvalid", says: "spec.valuesTemplate: "},
		{why: "an own valuesTemplate at the reserved key", ownTemplate: `kkp: {}`, reason: "ValuesInvalid", says: `values of installation valuesTemplate`},
		{
			why: "an own valuesTemplate without end", reason: "ValuesInvalid", says: "spec.valuesTemplate: ",
			ownTemplate: `{{ range until 100000 }}{{ range until 100000 }}` + strings.Repeat("a", 10_000) + `{{ end }}{{ end }}`,
		},
		{why: "a valuesTemplate that fails", template: `{{ fail "no" }}`, reason: "ValuesInvalid", says: "valuesTemplate:1:"},
	} {
		entry := entryWith("{}", test.template, number)
		spec := kubermaticv1.AddonInstallationSpec{ValuesFrom: test.from, Values: raw(test.own), ValuesTemplate: test.ownTemplate}
		if test.why == "all fields at once" {
			entry.Template.FormSpec = append(entry.Template.FormSpec,
				kubermaticv1.FormField{DisplayName: "M", InternalName: "m", Type: kubermaticv1.FormText},
				kubermaticv1.FormField{DisplayName: "Owner", InternalName: "owner", Type: kubermaticv1.FormText, Required: true})
		}
		f, outcome := w.pass(entry, spec, false)
		if !outcome.Is(loop.Stalled) || outcome.Condition != kubermaticv1.ConditionValuesResolved || outcome.Reason != test.reason || !strings.Contains(outcome.Message, test.says) {
			w.Errorf("%s: got %#v", test.why, outcome)
		}
		if f.values.Merged != nil && test.why != "another type" && test.why != "all fields at once" || strings.Contains(outcome.Message, "hunter2") || strings.Contains(outcome.Message, "stolen") {
			w.Errorf("%s: values %v, message %q", test.why, f.values.Merged, outcome.Message)
		}
	}
}

// testMisspeltKeys fails if a misspelt key is not reported, if a key that the catalogue's valuesTemplate uses is, or if
// the next reconciliation does not remove the message.
func (w *valuesWorld) testMisspeltKeys() {
	owner := kubermaticv1.FormField{DisplayName: "Owner", InternalName: "owner", Type: kubermaticv1.FormText}
	entry := entryWith("a: 1", "b: 2", owner)
	for given, want := range map[string]string{
		`{"ower":"hunter2","a":2,"b":3}`: `spec.values: key "ower" is neither in the form nor in the catalogue's values: did you mean "owner"?`,
		`{"owner":"hunter2","a":2}`:      "",
	} {
		f, outcome := w.pass(entry, kubermaticv1.AddonInstallationSpec{Values: raw(given)}, false)
		if outcome != nil {
			w.Fatalf("%s: got %#v", given, outcome)
		}
		project(f, &loop.Outcome{Kind: loop.Done}, time.Now())
		reported := meta.FindStatusCondition(f.installation.Status.Conditions, kubermaticv1.ConditionValuesResolved)
		if reported.Status != "True" || reported.Message != want {
			w.Errorf("%s: got %s %q, want %q", given, reported.Status, reported.Message, want)
		}
	}
}

// testAC10Secrets fails if a Custom add-on gets a secret, or if a Core one is rendered without those that its Cluster
// names.
func (w *valuesWorld) testAC10Secrets() {
	entry := entryWith("{}", "")
	f, outcome := w.pass(entry, kubermaticv1.AddonInstallationSpec{}, false)
	if outcome != nil || f.data.Credentials.Hetzner.Token != "" || f.data.Cluster.Kubeconfig != "" || f.data.Cluster.Address.AdminToken != "" {
		w.Fatalf("a Custom add-on: %#v, %v", outcome, f.data.Cluster.Address)
	}
	f, outcome = w.pass(entry, kubermaticv1.AddonInstallationSpec{}, true)
	if outcome != nil || f.data.Credentials.Hetzner.Token != "" || f.data.Cluster.Kubeconfig != "" || f.data.Cluster.Address.AdminToken != "" {
		w.Fatalf("a Core add-on that does not ask: %#v, %v", outcome, f.data.Cluster.Address)
	}
	entry.Template.ClusterSecrets = true
	f, outcome = w.pass(entry, kubermaticv1.AddonInstallationSpec{}, false)
	if outcome != nil || f.data.Credentials.Hetzner.Token != "" || f.data.Cluster.Kubeconfig != "" || f.data.Cluster.Address.AdminToken != "" {
		w.Fatalf("a Custom add-on that asks: %#v, %v", outcome, f.data.Cluster.Address)
	}
	_, outcome = w.pass(entry, kubermaticv1.AddonInstallationSpec{}, true)
	if !outcome.Is(loop.Waiting) || outcome.Reason != kubermaticv1.ReasonValuesMissing || !strings.Contains(outcome.Message, `"kubermatic/credential-hetzner"`) {
		w.Fatalf("without the Secret: got %#v", outcome)
	}
	w.create(given.Secret(platformSpace, "credential-hetzner", map[string][]byte{"token": []byte("hetzner-token")}))
	f, outcome = w.pass(entry, kubermaticv1.AddonInstallationSpec{}, true)
	got := []string{f.data.Credentials.Hetzner.Token, f.data.Cluster.Kubeconfig, f.data.Cluster.Address.AdminToken}
	if diff := cmp.Diff([]string{"hetzner-token", "kubeconfig", "admin-token"}, got); outcome != nil || diff != "" {
		w.Errorf("a Core add-on: %#v (-want +got):\n%s", outcome, diff)
	}
	w.testMarks(entry)
}

// testLargeSecrets fails if content that the cache left out looks missing, or if the cached part counts as the whole.
func (w *valuesWorld) testLargeSecrets() {
	large := `{"a":"` + strings.Repeat("x", 100<<10) + `"}`
	w.create(w.secret("large", kubermaticv1.UseValues, large), w.secret("huge", kubermaticv1.UseValues, large+large+large),
		w.secret("large-source", kubermaticv1.UseSource, large))
	f, outcome := w.pass(entryWith("{}", ""), kubermaticv1.AddonInstallationSpec{ValuesFrom: []kubermaticv1.ValuesSource{fromSecret("large", false)}}, false)
	if text, _ := f.values.Merged["a"].(string); outcome != nil || len(text) != 100<<10 {
		w.Errorf("values of 100 KiB: got %d bytes, %#v", len(text), outcome)
	}
}

// testMarks fails if a layer that is not the catalogue's may contain template marks while there are secrets.
func (w *valuesWorld) testMarks(entry *kubermaticv1.AddonVersion) {
	const marked = `{"a":{"extra":"hunter2 {{ .Values.kkp.Cluster.Kubeconfig }}"}}`
	w.create(w.secret("marked", kubermaticv1.UseValues, marked))
	for says, spec := range map[string]kubermaticv1.AddonInstallationSpec{
		`spec.values: the text at "a.extra"`:                {Values: raw(marked)},
		`spec.valuesTemplate: the text at "valuesTemplate"`: {ValuesTemplate: "a: hunter2 {{ .Cluster.Kubeconfig }}"},
		`spec.valuesFrom[0]: the text at "a.extra"`:         {ValuesFrom: []kubermaticv1.ValuesSource{fromSecret("marked", false)}},
	} {
		_, outcome := w.pass(entry, spec, true)
		if !outcome.Is(loop.Stalled) || outcome.Condition != kubermaticv1.ConditionValuesResolved || outcome.Reason != kubermaticv1.ReasonValuesInvalid ||
			!strings.HasPrefix(outcome.Message, says) || strings.Contains(outcome.Message, "hunter2") {
			w.Errorf("%s: got %#v", says, outcome)
		}
	}
	asking := entryWith(marked, "")
	asking.Template.ClusterSecrets = true
	if f, outcome := w.pass(asking, kubermaticv1.AddonInstallationSpec{}, true); outcome != nil || f.values.Layers == nil {
		w.Errorf("the catalogue's own values: got %#v", outcome)
	}
	f, outcome := w.pass(entry, kubermaticv1.AddonInstallationSpec{ValuesTemplate: "a: plain"}, true)
	if outcome != nil || f.values.Merged["a"] != "plain" {
		w.Errorf("a valuesTemplate without marks: got %#v, %v", outcome, f.values.Merged)
	}
	own := kubermaticv1.AddonInstallationSpec{ValuesTemplate: "a: 'none{{ .Cluster.Kubeconfig }}'"}
	if f, outcome := w.pass(entryWith("{}", ""), own, true); outcome != nil || f.values.Merged["a"] != "none" {
		w.Errorf("a Core add-on that does not ask: got %#v, %v", outcome, f.values.Merged)
	}
	if _, outcome := w.pass(entryWith("{}", ""), kubermaticv1.AddonInstallationSpec{Values: raw(marked)}, true); outcome != nil {
		w.Errorf("without secrets: got %#v", outcome)
	}
}

// testWakes fails if a change wakes an installation that does not depend on it, or does not wake one that does.
func (w *valuesWorld) testWakes() {
	install := func(namespace, name string, from ...kubermaticv1.ValuesSource) {
		w.create(given.Installation(namespace, name, "demo", "default", func(made *kubermaticv1.AddonInstallation) {
			made.Spec.ValuesFrom = from
		}))
	}
	install(space, "plain")
	install(space, "secret", fromSecret("other", true), fromSecret("first", false))
	install(space, "config", fromConfigMap("first", ""))
	install(space, "provider", fromProvider("BackupTarget", "default"))
	install(space, "object", fromObject("BackupTarget", "default", "status", ""))
	install("cluster-b", "elsewhere", fromSecret("first", false), fromProvider("BackupTarget", "default"))
	kkp := func(kind string) schema.GroupKind { return kkpv1.GroupVersion.WithKind(kind).GroupKind() }
	marked := ofMarked[client.Object](w.reconciler)
	secret := func(name string) []reconcile.Request {
		return marked(w.Context(), w.secret(name, kubermaticv1.UseValues, ""))
	}
	change := func(kind schema.GroupKind, namespace, name string) []reconcile.Request {
		return w.reconciler.ofChange(w.Context(), cluster.Change{Kind: kind, Cluster: target.Ref{Namespace: namespace}, Name: name})
	}
	for _, test := range []struct {
		why  string
		got  []reconcile.Request
		want []string
	}{
		{"a Secret", secret("first"), []string{"cluster-a/secret"}},
		{"the Secret of a provider", secret("target"), []string{"cluster-a/provider"}},
		{"a Secret that nobody reads", secret("unmarked"), nil},
		{"a ConfigMap of the same name", marked(w.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: "first"}}), []string{"cluster-a/config"}},
		{"a provider", change(backupTarget, space, "default"), []string{"cluster-a/object", "cluster-a/provider"}},
		{"another provider", change(backupTarget, space, "empty"), nil},
		{"addresses of a cluster", change(kkp("IPAMAllocation"), "cluster-b", "lb"), []string{"cluster-b/elsewhere"}},
		{"KKP's configuration", change(kkp("KubermaticConfiguration"), "", "kkp"), []string{
			"cluster-a/config", "cluster-a/object", "cluster-a/plain", "cluster-a/provider", "cluster-a/secret", "cluster-b/elsewhere",
		}},
	} {
		var names []string
		for _, request := range test.got {
			names = append(names, request.String())
		}
		slices.Sort(names)
		if diff := cmp.Diff(test.want, names); diff != "" {
			w.Errorf("%s (-want +got):\n%s", test.why, diff)
		}
	}
}
