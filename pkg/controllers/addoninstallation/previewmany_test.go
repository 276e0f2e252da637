package addoninstallation_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/serve/view/preview"
	"github.com/trellis-addons/trellis/test/given"
)

// asManifest is a ConfigMap, or another kind in the first namespace that it gets.
func asManifest(kind, name, rest string) string {
	return "apiVersion: v1\nkind: " + kind + "\nmetadata: {name: " + name + "}\n" + rest
}

// sampleAddons differ in what their objects depend on: chance, the revision, what lookup finds, the cluster, lists of values, hooks.
var sampleAddons = map[string]struct {
	method kubermaticv1.Method
	files  map[string]string
}{
	"password": {kubermaticv1.MethodHelm, map[string]string{
		"templates/a.yaml": asManifest("Secret", "password", "data: {password: '{{ randAlphaNum 20 | b64enc }}'}\n"),
	}},
	"certificate": {kubermaticv1.MethodHelm, map[string]string{
		"templates/a.yaml": "{{- $made := genSelfSignedCert \"a.example.com\" nil (list) 30 }}\n" +
			asManifest("ConfigMap", "certificate", "data: {certificate: '{{ $made.Cert | b64enc }}'}\n"),
	}},
	"revision": {kubermaticv1.MethodHelm, map[string]string{
		"templates/a.yaml": asManifest("ConfigMap", "revision", "data: {revision: '{{ .Release.Revision }} {{ .Release.IsInstall }} {{ .Values.tag }}'}\n"),
	}},
	"finding": {kubermaticv1.MethodHelm, map[string]string{
		"templates/a.yaml": "{{- $before := lookup \"v1\" \"Secret\" .Release.Namespace \"found\" }}\n" + asManifest("Secret", "found",
			"data: {password: '{{ if $before }}{{ $before.data.password }}{{ else }}{{ randAlphaNum 20 | b64enc }}{{ end }}', tag: '{{ .Values.tag | b64enc }}'}\n"),
	}},
	"capable": {kubermaticv1.MethodHelm, map[string]string{
		"templates/a.yaml": asManifest("ConfigMap", "capable", "data: {has: '{{ .Capabilities.APIVersions.Has \"apps/v1\" }} {{ .Values.tag }}'}\n"),
	}},
	"hooked": {kubermaticv1.MethodHelm, map[string]string{
		"templates/a.yaml": asManifest("ConfigMap", "hooked", "data: {tag: '{{ .Values.tag }}'}\n"),
		"templates/b.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: last\n  annotations: {helm.sh/hook: pre-delete}\n" +
			"data: {tag: '{{ .Values.tag }}'}\n",
	}},
	"including": {kubermaticv1.MethodHelm, map[string]string{
		"templates/_a.tpl": "{{ define \"tag\" }}{{ .Values | toYaml | sha256sum }}{{ end }}",
		"templates/a.yaml": asManifest("ConfigMap", "including", "data: {tag: '{{ include \"tag\" . }}'}\n"),
	}},
	"cluster": {kubermaticv1.MethodGoTemplate, map[string]string{
		"a.yaml": asManifest("ConfigMap", "cluster", "data: {name: '{{ .Cluster.Name }}', tag: '{{ .Variables.tag }}'}\n"),
	}},
	"listing": {kubermaticv1.MethodGoTemplate, map[string]string{
		"a.yaml": "{{ range until (len .Variables.tag) }}\n---\n" + asManifest("ConfigMap", "listing-{{ . }}", "data: {a: b}\n") + "{{ end }}",
	}},
	"chance": {kubermaticv1.MethodGoTemplate, map[string]string{
		"a.yaml": asManifest("ConfigMap", "chance", "data: {chance: '{{ randAlphaNum 20 }}', tag: '{{ .Variables.tag }}'}\n"),
	}},
}

// Property: what a preview renders is what the installation, or its change, then has, and costs no second rendering. Red when previews
// render with another key of inputs (another InputsKey).
func TestPreviewsOfManyAddonsAreWhatIsInstalled(t *testing.T) {
	t.Parallel()
	w := newPreviewWorld(t)
	placed := map[string]string{}
	for addon, sample := range sampleAddons {
		if sample.method == kubermaticv1.MethodHelm {
			placed[addon+"/Chart.yaml"] = "apiVersion: v2\nname: " + addon + "\nversion: 1.0.0\n"
		}
		for name, text := range sample.files {
			placed[addon+"/"+name] = text
		}
	}
	if _, err := w.sources.Commit("content", placed); err != nil {
		t.Fatal(err)
	}
	objects := map[string]*kubermaticv1.AddonInstallation{}
	for addon, sample := range sampleAddons {
		w.offer(addon, kubermaticv1.CatalogueCustom, kubermaticv1.AddonVersion{
			Version: "1.0.0", Template: &kubermaticv1.Template{Method: sample.method}, Values: raw(`{"tag":"catalogue"}`),
			Source: given.Git(w.sources.GitURL+"/content.git", addon),
		})
		objects[addon] = given.Installation(w.namespace, addon, addon, w.unique(addon), given.In("1.0.0"), given.NewNamespace)
	}
	for _, values := range []string{`{"tag":"one"}`, `{"tag":"second"}`} {
		foreseen := map[string]preview.Preview{}
		for addon, object := range objects {
			asked := given.Installation(w.namespace, addon, addon, object.Spec.TargetNamespace, given.In("1.0.0"), given.NewNamespace)
			asked.Spec.Values = raw(values)
			made, text := w.preview(asked)
			if made.State != preview.StateComplete || made.ObjectsDigest == "" {
				t.Errorf("%s: %s", addon, text)
			}
			if strings.Contains(text, "\"kind\":\"Secret\"") && strings.Contains(text, "\"after\":\"Secret\"") {
				t.Errorf("%s: leaves of a Secret are shown: %s", addon, text)
			}
			foreseen[addon] = made
		}
		rendered := w.renders.Load()
		for _, object := range objects {
			if object.UID == "" {
				object.Spec.Values = raw(values)
				w.create(object)
				continue
			}
			w.edit(object, func(object *kubermaticv1.AddonInstallation) { object.Spec.Values = raw(values) })
		}
		for addon, object := range objects {
			w.ready(object)
			if object.Status.LastApplied.Objects != foreseen[addon].ObjectsDigest {
				t.Errorf("%s, values %s: other objects are applied than the preview had: %s", addon, values, fmt.Sprint(actions(foreseen[addon])))
			}
		}
		if again := w.renders.Load(); again != rendered {
			t.Errorf("values %s: %d renderings for the previews, and %d with the installations", values, rendered, again)
		}
	}
}

// askedGate renders values with "asked" once its gate is open, and counts how many of them wait there.
type askedGate struct {
	render.Renderer
	gate         chan struct{}
	waiting, top *atomic.Int32
}

func (g askedGate) Render(ctx context.Context, input render.Input) (render.Result, error) {
	if input.Values["asked"] == nil {
		return g.Renderer.Render(ctx, input)
	}
	defer g.waiting.Add(-1)
	for now, top := g.waiting.Add(1), g.top.Load(); now > top && !g.top.CompareAndSwap(top, now); top = g.top.Load() {
	}
	select {
	case <-g.gate:
		return g.Renderer.Render(ctx, input)
	case <-ctx.Done():
		return render.Result{}, ctx.Err()
	}
}

// A hundred askers of one namespace at once have one rendering there, and nothing that a reconciliation of another cluster waits for: it
// installs while the askers are still held, and so does one of their own cluster. Red when each preview goes on by itself (oneEach), and when
// previews take more turns than one of a namespace (limits of the query endpoint).
func TestAHundredAskersDelayNoReconciliation(t *testing.T) {
	t.Parallel()
	w := &previewWorld{world: newWorld(t)}
	other := w.addNeighbour()
	held := askedGate{gate: make(chan struct{}), waiting: &atomic.Int32{}, top: &atomic.Int32{}}
	w.renderers = bothMethods()
	for method, renderer := range w.renderers {
		one := held
		one.Renderer = renderer
		w.renderers[method] = one
	}
	w.start()
	w.serve(w.manager.Elected())
	w.token = w.caller("editor", "create", "update")
	w.publish("asked", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"})

	var askers sync.WaitGroup
	answers := make(chan int, 100)
	for number := range cap(answers) {
		object := given.Installation(w.namespace, fmt.Sprintf("asked-%d", number), "asked", w.unique("asked"), given.In("1.0.0"), given.NewNamespace)
		object.Spec.Values = raw(fmt.Sprintf(`{"asked":%d}`, number))
		body := w.body(object)
		askers.Go(func() {
			for range 3 {
				answers <- w.post(w.namespace+"/preview", w.token, body).Code
				if t.Context().Err() != nil {
					return
				}
			}
		})
	}
	first := <-answers
	for i, namespace := range []string{other, w.namespace} {
		space := w.unique(fmt.Sprintf("plain-%d", i)) // both clusters have one API server
		object := given.Installation(namespace, "plain", "asked", space, given.In("1.0.0"), given.NewNamespace)
		w.create(object)
		w.ready(object)
	}
	if now, top := held.waiting.Load(), held.top.Load(); now != 1 || top != 1 {
		t.Errorf("after the first answer (%d) and two installations, %d renderings of askers are held, %d at most before; want 1", first, now, top)
	}
	close(held.gate)
	go func() {
		askers.Wait()
		close(answers)
	}()
	counts := map[int]int{}
	for code := range answers {
		counts[code]++
	}
	if top := held.top.Load(); top != 1 || counts[http.StatusOK] == 0 || counts[http.StatusServiceUnavailable]+counts[http.StatusAccepted]+counts[http.StatusOK] != 299 {
		t.Errorf("answers by code are %v, and %d renderings went on at a time", counts, top)
	}
}

// slowBody has no byte until its end. It closes read when it is read.
type slowBody struct{ read, end chan struct{} }

func (s *slowBody) Read([]byte) (int, error) {
	close(s.read)
	<-s.end
	return 0, io.ErrUnexpectedEOF
}

// besideASlowBody expects a preview while another body of the namespace is being read.
func (w *previewWorld) besideASlowBody(body string) {
	w.t.Helper()
	slow, ended := &slowBody{make(chan struct{}), make(chan struct{})}, make(chan struct{})
	go func() {
		defer close(ended)
		request := httptest.NewRequestWithContext(w.t.Context(), http.MethodPost, "/api/v1/namespaces/"+w.namespace+"/preview", slow)
		request.Header.Set("Authorization", "Bearer "+w.token)
		w.endpoint.ServeHTTP(httptest.NewRecorder(), request)
	}()
	<-slow.read
	if answer := w.post(w.namespace+"/preview", w.token, body); answer.Code != http.StatusOK {
		w.t.Errorf("beside a slow body: got %d %s", answer.Code, answer.Body)
	}
	close(slow.end)
	<-ended
}
