package addoninstallation_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/serve/query"
	"github.com/trellis-addons/trellis/pkg/serve/view/preview"
	"github.com/trellis-addons/trellis/pkg/values"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/given"
)

// previewWorld is a world with the query endpoint over it, and an account that may create and update installations.
type previewWorld struct {
	*world
	endpoint *query.Server
	token    string
	renders  atomic.Int32
	mutex    sync.Mutex
	log      bytes.Buffer
}

func newPreviewWorld(t *testing.T, change ...func(render.Renderer) render.Renderer) *previewWorld {
	t.Helper()
	w := &previewWorld{world: newWorld(t)}
	w.driftInterval, w.providers = time.Hour, []schema.GroupKind{values.DeploymentConfigKind}
	w.renderers = bothMethods()
	for method, renderer := range w.renderers {
		for _, one := range change {
			renderer = one(renderer)
		}
		w.renderers[method] = countedRenderer{renderer, &w.renders}
	}
	w.logger = funcr.New(func(prefix, args string) {
		w.mutex.Lock()
		defer w.mutex.Unlock()
		fmt.Fprintln(&w.log, prefix, args)
	}, funcr.Options{Verbosity: 6}) // the most that a manager logs
	w.start()
	w.serve(w.manager.Elected())
	w.token = w.caller("editor", "create", "update")
	return w
}

// serve has the endpoint of a replica that leads once it is elected.
func (w *previewWorld) serve(elected <-chan struct{}) {
	w.t.Helper()
	w.endpoint = query.New(query.Dependencies{
		Installations: w.manager.GetClient(), Previews: w.previews, Elected: elected,
		Reviews: query.NewReviews(w.seed, query.ReviewOptions{TTL: time.Millisecond}),
	}, query.Options{Logger: w.logger})
}

// two are versions 1.0.0 and 2.0.0, with a content each.
func (w *previewWorld) two(method kubermaticv1.Method, contents ...map[string]string) (made []kubermaticv1.AddonVersion) {
	w.t.Helper()
	placed := map[string]string{}
	for i, files := range contents {
		version := fmt.Sprintf("%d.0.0", i+1)
		for name, text := range files {
			placed[version+"/"+name] = text
		}
		made = append(made, kubermaticv1.AddonVersion{
			Version: version, Template: &kubermaticv1.Template{Method: method},
			Source: given.Git(w.sources.GitURL+"/content.git", version), Values: raw(fmt.Sprintf(`{"version":%q}`, version)),
		})
	}
	_, err := w.sources.Commit("content", placed)
	expect.NoError(w.t, err)
	return made
}

// caller is the token of an account that has these rights on installations of the world's namespace.
func (w *previewWorld) caller(name string, verbs ...string) string {
	w.t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
	expect.Ensure(w.t, w.seed, account)
	if len(verbs) > 0 {
		made := metav1.ObjectMeta{Namespace: w.namespace, Name: name}
		w.create(&rbacv1.Role{ObjectMeta: made, Rules: []rbacv1.PolicyRule{
			{Verbs: verbs, APIGroups: []string{kubermaticv1.GroupVersion.Group}, Resources: []string{"addoninstallations"}},
		}})
		w.create(&rbacv1.RoleBinding{
			ObjectMeta: made, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: w.namespace, Name: name}},
		})
	}
	return expect.Token(w.t, w.seed, account)
}

// post asks for a preview in a namespace.
func (w *previewWorld) post(namespace, token, body string) *httptest.ResponseRecorder {
	w.t.Helper()
	request := httptest.NewRequestWithContext(w.t.Context(), http.MethodPost, "/api/v1/namespaces/"+namespace, strings.NewReader(body))
	request.Header.Set("Authorization", "Bearer "+token)
	answer := httptest.NewRecorder()
	w.endpoint.ServeHTTP(answer, request)
	return answer
}

func (w *previewWorld) body(object *kubermaticv1.AddonInstallation) string {
	w.t.Helper()
	encoded, err := json.Marshal(object)
	expect.NoError(w.t, err)
	return string(encoded)
}

// preview asks until the preview is complete or refused, as a caller does. It gives the answer, and what it says.
func (w *previewWorld) preview(object *kubermaticv1.AddonInstallation, query ...string) (found preview.Preview, text string) {
	w.t.Helper()
	body := w.body(object)
	expect.Eventually(w.t, expect.Patience, func() error {
		answer := w.post(w.namespace+"/preview"+strings.Join(query, ""), w.token, body)
		switch answer.Code {
		case http.StatusOK:
		case http.StatusAccepted:
			if answer.Header().Get("Retry-After") == "" {
				w.t.Error("a pending preview has no Retry-After")
			}
			fallthrough
		default:
			return fmt.Errorf("%d: %s", answer.Code, answer.Body)
		}
		text = answer.Body.String()
		found = preview.Preview{}
		return json.Unmarshal([]byte(text), &found)
	})
	w.conforms(text)
	return found, text
}

func (w *previewWorld) conforms(text string) {
	w.t.Helper()
	w.conformsTo("Preview", text)
}

// conformsTo compares an answer with a schema of the OpenAPI document.
func (w *previewWorld) conformsTo(name, text string) {
	w.t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(query.Document))
	expect.NoError(w.t, err)
	compiler := jsonschema.NewCompiler()
	expect.NoError(w.t, compiler.AddResource("openapi.json", document))
	schema, err := compiler.Compile("openapi.json#/components/schemas/" + name)
	expect.NoError(w.t, err)
	parsed, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	expect.NoError(w.t, err)
	if err := schema.Validate(parsed); err != nil {
		w.t.Errorf("an answer is not what the OpenAPI document describes: %v\n%s", err, text)
	}
}

// versionsHere are the resourceVersions of everything in the Cluster's namespace that somebody may write.
func (w *previewWorld) versionsHere() map[string]string {
	w.t.Helper()
	found := map[string]string{}
	for _, list := range []client.ObjectList{
		&kubermaticv1.AddonInstallationList{}, &corev1.SecretList{}, &corev1.ConfigMapList{}, &eventsv1.EventList{}, &kubermaticv1.AddonCatalogueList{},
	} {
		expect.List(w.t, w.seed, list, client.InNamespace(w.namespace))
		expect.NoError(w.t, meta.EachListItem(list, func(item runtime.Object) error {
			object := item.(client.Object)
			found[fmt.Sprintf("%T %s", object, object.GetName())] = object.GetResourceVersion()
			return nil
		}))
	}
	return found
}

func actions(of preview.Preview) (found []string) {
	for _, one := range of.Objects {
		found = append(found, fmt.Sprintf("%s %s %s", one.Action, one.Kind, one.Name))
	}
	slices.Sort(found)
	return found
}

func changesOf(of preview.Preview, name string) (found []string) {
	for _, one := range of.Objects {
		if one.Name != name {
			continue
		}
		for _, change := range one.Changes {
			found = append(found, fmt.Sprintf("%s %s %v>%v", change.Action, change.Path, change.Before, change.After))
		}
	}
	return found
}

// A preview shows what the installation then gets, and costs its rendering no second time. Red when the preview has another rendering
// than the reconciliation (the counter), when its steps write (the client's Patch), and when differences are not looked for.
func TestPreviewIsWhatAReconciliationMakes(t *testing.T) {
	t.Parallel()
	for _, method := range []kubermaticv1.Method{kubermaticv1.MethodGoTemplate, kubermaticv1.MethodHelm} {
		t.Run(string(method), func(t *testing.T) {
			t.Parallel()
			w := newPreviewWorld(t)
			files := func(version string, others ...string) map[string]string {
				if method == kubermaticv1.MethodHelm {
					return webChart(version, others...)
				}
				made := map[string]string{}
				for name, text := range webChart(version, others...) {
					if plain, isTemplate := strings.CutPrefix(name, "templates/"); isTemplate {
						made[plain] = strings.ReplaceAll(text, ".Values.", ".Variables.")
					}
				}
				return made
			}
			space := w.unique("web")
			w.publishAddon(kubermaticv1.CatalogueCustom, kubermaticv1.Addon{
				Name: "web", TargetNamespace: space, CreateNamespace: true,
				Versions: w.two(method, files("1.0.0", "other"), files("2.0.0")),
			})
			object := given.Installation(w.namespace, "web", "web", "", given.In("1.0.0")) // the controller writes the namespace into it

			before := w.versionsHere()
			made, _ := w.preview(object)
			if diff := cmp.Diff(before, w.versionsHere()); diff != "" {
				t.Errorf("a preview writes (-before +after):\n%s", diff)
			}
			want := []string{"Create ConfigMap other", "Create ConfigMap settings", "Create Namespace " + space}
			if diff := cmp.Diff(want, actions(made)); diff != "" || made.State != preview.StateComplete || made.Version != "1.0.0" {
				t.Fatalf("got %+v (-want +got):\n%s", made, diff)
			}
			if want := []preview.Value{{Path: "version", Origin: "catalogue", Value: "1.0.0"}}; cmp.Diff(want, made.Values) != "" {
				t.Errorf("values are %v", made.Values)
			}
			rendered := w.renders.Load()
			asked := object.DeepCopy()
			asked.Spec.TargetNamespace, asked.Spec.CreateNamespace = space, true
			w.create(object)
			w.ready(object)
			if again := w.renders.Load(); again != rendered || rendered != 1 {
				t.Errorf("%d renderings for the preview, and %d with the installation", rendered, again)
			}
			if object.Status.LastApplied.Objects != made.ObjectsDigest {
				t.Error("other objects are applied than the preview had")
			}

			made, _ = w.preview(asked)
			if made.Counts.Same != 3 || len(made.Objects) != 3 || made.Installed != "1.0.0" {
				t.Errorf("of the unchanged installation: %v", actions(made))
			}
			asked.Spec.Values = raw(`{"version":"changed"}`)
			made, _ = w.preview(asked)
			if diff := cmp.Diff([]string{"Change data.version 1.0.0>changed"}, changesOf(made, "settings")); diff != "" {
				t.Errorf("of changed values (-want +got):\n%s", diff)
			}
			asked.Spec.Values, asked.Spec.AddonRef.Version = nil, "2.0.0"
			made, _ = w.preview(asked)
			if !slices.Contains(actions(made), "Remove ConfigMap other") || made.Counts.Change != 1 || made.Version != "2.0.0" {
				t.Errorf("of another version: %v", actions(made))
			}
			asked.Spec.AddonRef.Version = "3.0.0"
			made, _ = w.preview(asked)
			if made.State != preview.StateRefused || made.Reason != kubermaticv1.ReasonVersionUnknown || made.Message == "" || len(made.Objects) > 0 {
				t.Errorf("of a version that does not exist: %+v", made)
			}
			if current := w.renders.Load(); current != 3 {
				t.Errorf("%d renderings, want one for each change", current)
			}
		})
	}
}

// With live=true the user cluster says what it would refuse, also objects of others: by their names, and never their content. Nothing is
// written there or here. Red when the dry run is another revision's (Rehearse), when patches are real (Target.DryRun), when an unchanged
// installation is tried, and when messages keep values.
func TestALivePreviewAsksTheUserCluster(t *testing.T) {
	t.Parallel()
	w := newPreviewWorld(t)
	space := w.unique("live")
	taken := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: taken}\ndata: {mine: '{{ .Variables.version }}'}\n"
	odd := "apiVersion: v1\nkind: Service\nmetadata: {name: odd}\nspec: {type: 'canary-of-a-value', ports: [{port: 80}]}\n"
	w.publishAddon(kubermaticv1.CatalogueCustom, kubermaticv1.Addon{
		Name: "live", TargetNamespace: space, CreateNamespace: true,
		Versions: w.two(kubermaticv1.MethodGoTemplate, map[string]string{"a.yaml": taken}, map[string]string{"a.yaml": taken, "b.yaml": odd}),
	})
	expect.Create(t, w.seed, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: space}})
	others := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: "taken"}, Data: map[string]string{"theirs": "canary-of-others"},
	}
	expect.Create(t, w.seed, others)
	object := given.Installation(w.namespace, "live", "live", "", given.In("2.0.0"))
	before := w.versionsHere()
	made, text := w.preview(object, "?live=true")
	if made.Live == nil || made.Live.Message != "" || made.Live.Checked == 0 || !made.Differs() {
		t.Fatalf("got %s", text)
	}
	var reasons []string
	for _, one := range made.Live.Problems {
		reasons = append(reasons, one.Kind+" "+one.Namespace+"/"+one.Name+" "+one.Reason)
	}
	slices.Sort(reasons)
	want := []string{"ConfigMap " + space + "/taken ObjectExists", "Service " + space + "/odd ObjectInvalid"}
	if diff := cmp.Diff(want, reasons); diff != "" || strings.Contains(text, "canary-of-others") || strings.Contains(made.Live.Problems[0].Message+
		made.Live.Problems[1].Message, "canary") {
		t.Errorf("%s (-want +got):\n%s", text, diff)
	}
	if made, _ := w.preview(object); made.Live != nil {
		t.Errorf("without live it has %+v", made.Live)
	}
	list := corev1.ConfigMapList{}
	expect.List(t, w.seed, &list, client.InNamespace(space))
	list.Items = slices.DeleteFunc(list.Items, func(one corev1.ConfigMap) bool { return one.Name == "kube-root-ca.crt" })
	if diff := cmp.Diff(before, w.versionsHere()); diff != "" || len(list.Items) != 1 || len(list.Items[0].Data) != 1 {
		t.Errorf("a dry run writes %v (-before +after):\n%s", list.Items, diff)
	}
	expect.NoError(t, w.seed.Delete(t.Context(), others))
	object.Spec.AddonRef.Version = "1.0.0"
	if made, text = w.preview(object, "?live=true"); made.Live == nil || len(made.Live.Problems) > 0 {
		t.Errorf("of free names: %s", text)
	}
	asked := object.DeepCopy()
	asked.Spec.TargetNamespace, asked.Spec.CreateNamespace = space, true
	w.create(object)
	w.ready(object)
	if made, text = w.preview(asked, "?live=true"); made.Live == nil || made.Live.Checked > 0 || made.Differs() {
		t.Errorf("of an unchanged installation: %s", text)
	}
}

// gated renders once its gate is open.
type gated struct {
	render.Renderer
	gate chan struct{}
}

func (g gated) Render(ctx context.Context, input render.Input) (render.Result, error) {
	select {
	case <-g.gate:
		return g.Renderer.Render(ctx, input)
	case <-ctx.Done():
		return render.Result{}, ctx.Err()
	}
}

// A rendering that takes long is not waited for: the answer says so and when to ask again, and the next one has its objects. Red when
// what is pending counts as refused (isPending).
func TestPreviewIsPendingWhileItIsRendered(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	w := newPreviewWorld(t, func(renderer render.Renderer) render.Renderer { return gated{renderer, gate} })
	w.publish("slow", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"})
	object := given.Installation(w.namespace, "slow", "slow", w.unique("slow"), given.In("1.0.0"), given.NewNamespace)
	expect.Eventually(t, expect.Patience, func() error {
		answer, made := w.post(w.namespace+"/preview", w.token, w.body(object)), preview.Preview{}
		err := json.Unmarshal(answer.Body.Bytes(), &made)
		if err != nil || answer.Code != http.StatusAccepted || answer.Header().Get("Retry-After") != "2" ||
			made.State != preview.StatePending || made.Reason != kubermaticv1.ReasonRendering || made.RetryAfter != 2 {
			return fmt.Errorf("%d, %v: %s", answer.Code, err, answer.Body)
		}
		w.conforms(answer.Body.String())
		return nil
	})
	close(gate)
	if made, text := w.preview(object); made.State != preview.StateComplete || w.renders.Load() != 1 {
		t.Errorf("%d renderings: %s", w.renders.Load(), text)
	}
}

// A value that a Secret has is in no answer and no log: not in objects and names that templates derive from it, not encoded, not in
// errors, and not once the installation names the Secret no more. Red when leaves are shown in spite of valuesFrom, when the record's
// origins don't count, and when names are not masked.
func TestPreviewsShowNoSecretValues(t *testing.T) {
	t.Parallel()
	w := newPreviewWorld(t)
	const canary = "canary-of-a-secret-7"
	text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 'of-{{ .Variables.password }}'}\ndata:\n  plain: '{{ .Variables.password }}'\n" +
		"  encoded: '{{ .Variables.password | b64enc }}'\n  reversed: '{{ .Variables.password | trunc 9 }}'\n"
	secret := "apiVersion: v1\nkind: Secret\nmetadata: {name: secret}\nstringData: {own: 'canary-of-the-template', password: '{{ .Variables.password }}'}\n"
	copied := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: copied}\ndata: {copied: 'canary-of-the-template'}\n"
	failing := map[string]string{"a.yaml": "{{ fail (printf \"it is %s\" .Variables.password) }}\n"}
	w.publishVersions("secretive", kubermaticv1.CatalogueCustom,
		w.two(kubermaticv1.MethodGoTemplate, map[string]string{"a.yaml": text, "b.yaml": secret, "c.yaml": copied}, failing))
	w.create(given.MarkedSecret(kubermaticv1.UseValues, w.namespace, "values", map[string][]byte{"values.yaml": []byte("password: " + canary + "\n")}))
	object := given.Installation(w.namespace, "secretive", "secretive", w.unique("secretive"), given.In("1.0.0"), given.NewNamespace)
	object.Spec.ValuesFrom = []kubermaticv1.ValuesSource{{SecretRef: &kubermaticv1.KeyReference{Name: "values"}}}
	forbidden := []string{
		canary, base64.StdEncoding.EncodeToString([]byte(canary)), canary[:9], "canary-of-the-template",
		base64.StdEncoding.EncodeToString([]byte("canary-of-the-template")),
	}
	check := func(why, text string) {
		t.Helper()
		for _, part := range forbidden {
			if strings.Contains(text, part) {
				t.Errorf("%s: %q is in %s", why, part, text)
			}
		}
	}

	made, answer := w.preview(object)
	check("a new installation", answer)
	if made.Masked == "" || made.Counts.Create != 4 || made.ObjectsDigest != "" {
		t.Errorf("a new installation: %s", answer)
	}
	asked := object.DeepCopy()
	asked.Spec.AddonRef.Version = "2.0.0"
	made, answer = w.preview(asked)
	check("a template that fails", answer)
	if made.State != preview.StateRefused || made.Reason != kubermaticv1.ReasonRenderFailed {
		t.Errorf("a template that fails: %s", answer)
	}
	asked = object.DeepCopy()
	w.create(object)
	w.ready(object)
	asked.Spec.ValuesFrom, asked.Spec.Values = nil, raw(`{"password":"mine-own-one"}`)
	made, answer = w.preview(asked)
	check("an installation that had the Secret", answer)
	if made.Masked == "" || made.Counts.Remove != 1 || made.Counts.Create != 1 {
		t.Errorf("an installation that had the Secret: %s", answer)
	}
	another := given.Installation(w.namespace, "another", "secretive", w.unique("another"), given.In("1.0.0"), given.NewNamespace)
	another.Spec.Values = raw(`{"password":"mine-own-one"}`)
	made, answer = w.preview(another)
	check("an installation without the Secret", answer)
	if made.Masked != "" || !strings.Contains(answer, `"name":"copied"`) {
		t.Errorf("an installation without the Secret: %s", answer)
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	check("the log", w.log.String())
}

// A caller may have no right to read an object that the version names. Red when its values are shown.
func TestPreviewsMaskObjectsThatTheCatalogueNames(t *testing.T) {
	t.Parallel()
	w := newPreviewWorld(t)
	text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: configured}\ndata: {proxy: '{{ .Variables.HTTPSProxy }}'}\n"
	versions := w.two(kubermaticv1.MethodGoTemplate, map[string]string{"a.yaml": text})
	versions[0].ValuesFrom = []kubermaticv1.VersionValuesSource{{ObjectRef: &kubermaticv1.ObjectReference{
		APIGroup: values.DeploymentConfigKind.Group, Kind: values.DeploymentConfigKind.Kind, Name: "proxied",
	}}}
	w.publishVersions("configured", kubermaticv1.CatalogueCustom, versions)
	w.create(w.deploymentConfig("proxied", "proxyConfig: {httpsProxy: 'http://canary-of-a-proxy'}"))
	made, answer := w.preview(given.Installation(w.namespace, "configured", "configured", w.unique("configured"), given.NewNamespace))
	if made.Masked == "" || made.Counts.Create != 2 || strings.Contains(answer, "canary-of-a-proxy") {
		t.Errorf("the preview is %s", answer)
	}
}

// Forbidden and absent are one answer, and what is wrong with a body is refused with its place. Red when the rights are not asked for,
// when a body is decoded without its rules, and when a body is read in the turn of its namespace.
func TestPreviewsAreRefused(t *testing.T) {
	t.Parallel()
	w := newPreviewWorld(t)
	w.publish("plain", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"})
	object := given.Installation(w.namespace, "plain", "plain", w.unique("plain"), given.In("1.0.0"), given.NewNamespace)
	absent := w.body(object)
	w.preview(object)
	existing := given.Installation(w.namespace, "there", "plain", w.unique("there"), given.In("1.0.0"), given.NewNamespace)
	there := w.body(existing)
	w.create(existing)
	w.ready(existing)
	w.preview(existing)

	none, creates, updates := w.caller("none"), w.caller("creates", "create"), w.caller("updates", "update")
	for token, body := range map[string]string{creates: absent, updates: there} {
		expect.Eventually(t, expect.Patience, func() error {
			if answer := w.post(w.namespace+"/preview", token, body); answer.Code != http.StatusOK {
				return fmt.Errorf("%d: %s", answer.Code, answer.Body)
			}
			return nil
		})
	}
	nothing := w.post("cluster-absent/preview", none, absent)
	if nothing.Code != http.StatusNotFound {
		t.Fatalf("an absent namespace: %d", nothing.Code)
	}
	for why, answer := range map[string]*httptest.ResponseRecorder{
		"no right": w.post(w.namespace+"/preview", none, absent), "no right, and no body": w.post(w.namespace+"/preview", none, "{"),
		"create, of one that exists":   w.post(w.namespace+"/preview", creates, there),
		"update, of one that does not": w.post(w.namespace+"/preview", updates, absent),
		"another namespace":            w.post("kube-system/preview", w.token, absent),
	} {
		if answer.Code != nothing.Code || answer.Body.String() != nothing.Body.String() {
			t.Errorf("%s: %d %s", why, answer.Code, answer.Body)
		}
	}
	changed := func(change func(*kubermaticv1.AddonInstallation)) string {
		edited := given.Installation(w.namespace, "there", "plain", existing.Spec.TargetNamespace, given.In("1.0.0"), given.NewNamespace)
		change(edited)
		return w.body(edited)
	}
	for _, test := range []struct {
		why, query, body string
		code             int
		says             string
	}{
		{"a dry run", "?live=maybe", absent, http.StatusBadRequest, "live"},
		{"an unknown parameter", "?wet=true", absent, http.StatusBadRequest, "wet"},
		{"a large body", "", strings.Repeat(" ", 320<<10) + absent, http.StatusRequestEntityTooLarge, "327680"},
		{"no object", "", "[]", http.StatusBadRequest, "body"},
		{"an unknown field", "", strings.Replace(absent, `"spec":{`, `"spec":{"colour":"red",`, 1), http.StatusBadRequest, "body"},
		{"a source", "", strings.Replace(absent, `"spec":{`, `"spec":{"source":{"git":{"remote":"https://a"}},`, 1), http.StatusBadRequest, "body"},
		{"another kind", "", strings.Replace(absent, `{`, `{"kind":"AddonSet",`, 1), http.StatusBadRequest, "AddonInstallation"},
		{"another namespace", "", strings.Replace(absent, `"namespace":"`, `"namespace":"x`, 1), http.StatusBadRequest, "namespace"},
		{"no add-on", "", `{"spec":{}}`, http.StatusBadRequest, "body"},
		{
			"a wrong namespace", "", changed(func(one *kubermaticv1.AddonInstallation) { one.Name, one.Spec.TargetNamespace = "x", "A/b" }),
			http.StatusBadRequest, "spec.targetNamespace",
		},
		{
			"another add-on", "", changed(func(one *kubermaticv1.AddonInstallation) { one.Spec.AddonRef.Name = "x" }),
			http.StatusBadRequest, "spec.addonRef.name",
		},
		{
			"another target", "", changed(func(one *kubermaticv1.AddonInstallation) { one.Spec.TargetNamespace = "x" }),
			http.StatusBadRequest, "spec.targetNamespace",
		},
		{
			"a core add-on", "", changed(func(one *kubermaticv1.AddonInstallation) { one.Name, one.Spec.CoreAddon = "x", true }),
			http.StatusBadRequest, "spec.coreAddon",
		},
	} {
		answer := w.post(w.namespace+"/preview"+test.query, w.token, test.body)
		if answer.Code != test.code || !strings.Contains(answer.Body.String(), test.says) {
			t.Errorf("%s: got %d %s", test.why, answer.Code, answer.Body)
		}
	}
	w.besideASlowBody(absent)
	w.serve(make(chan struct{}))
	answer := w.post(w.namespace+"/preview", w.token, absent)
	if answer.Code != http.StatusServiceUnavailable || answer.Header().Get("Retry-After") == "" {
		t.Errorf("a replica that does not lead: got %d %s", answer.Code, answer.Body)
	}
}
