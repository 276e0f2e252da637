package addoninstallation_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/serve/view/preview"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/given"
)

// record asks for the record of an installation.
func (w *previewWorld) record(token, name string) (*httptest.ResponseRecorder, preview.History) {
	w.t.Helper()
	path := "/api/v1/namespaces/" + w.namespace + "/installations/" + name + "?revisions=true"
	request := httptest.NewRequestWithContext(w.t.Context(), http.MethodGet, path, http.NoBody)
	request.Header.Set("Authorization", "Bearer "+token)
	answer := httptest.NewRecorder()
	w.endpoint.ServeHTTP(answer, request)
	var found struct{ Record preview.History }
	if answer.Code == http.StatusOK {
		expect.NoError(w.t, json.Unmarshal(answer.Body.Bytes(), &found))
		w.conformsTo("Installation", answer.Body.String())
	}
	return answer, found.Record
}

// The record of an installation has its revisions with what each changed, and the values in force with their layers. Once one of the values
// came from a Secret, neither it nor what a template made of it is shown: not of that revision, and not of the next, which removes it. Red
// when a revision is compared with another one than that before it, when the mask of one of the two does not count (shows), when names keep
// secrets, and when the right to update is not needed.
func TestTheRecordHasRevisionsAndValuesInForce(t *testing.T) {
	t.Parallel()
	w := newPreviewWorld(t)
	const canary = "canary-of-a-secret-8"
	text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 'of-{{ .Variables.word }}'}\ndata: {k: '{{ .Variables.word }}'}\n"
	pod := "apiVersion: v1\nkind: PodTemplate\nmetadata: {name: pod}\ntemplate: {spec: {containers: [{name: a, image: 'quay.io/x/y:1'}, " +
		"{name: b, image: 'example.com/{{ .Variables.word }}'}]}}\n"
	w.publishVersions("worded", kubermaticv1.CatalogueCustom, w.two(kubermaticv1.MethodGoTemplate, map[string]string{"a.yaml": text, "b.yaml": pod},
		map[string]string{"a.yaml": text, "b.yaml": pod, "c.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more}\n"}))
	object := given.Installation(w.namespace, "worded", "worded", w.unique("worded"), given.In("1.0.0"), given.NewNamespace)
	object.Spec.Values = raw(`{"word":"open"}`)
	w.create(object)
	w.ready(object)
	if diff := cmp.Diff([]string{"example.com/open", "quay.io/x/y:1"}, object.Status.LastApplied.Images); diff != "" {
		t.Errorf("images (-want +got):\n%s", diff)
	}
	expect.Change(t, w.seed, object, func(now *kubermaticv1.AddonInstallation) { now.Spec.AddonRef.Version = "2.0.0" })
	w.ready(object)
	token := w.caller("reader", "get", "update")
	_, found := w.record(token, "worded")
	if len(found.Revisions) != 2 || found.Masked != "" {
		t.Fatalf("got %+v", found)
	}
	newest, first := found.Revisions[0], found.Revisions[1]
	if newest.Revision != 2 || newest.Version != "2.0.0" || *newest.Counts != (preview.Counts{Create: 1, Same: 3}) || len(newest.Objects) != 1 ||
		newest.Objects[0].Name != "more" || len(newest.Values) != 1 || fmt.Sprint(newest.Values[0]) != "{version Change 1.0.0 2.0.0}" {
		t.Errorf("the newest is %+v", newest)
	}
	if first.Revision != 1 || *first.Counts != (preview.Counts{Create: 3}) || len(first.Values) != 2 {
		t.Errorf("the first is %+v", first)
	}
	if want := "[{version catalogue 2.0.0} {word installation open}]"; fmt.Sprint(found.Values) != want {
		t.Errorf("values are %v, want %s", found.Values, want)
	}

	w.create(given.MarkedSecret(kubermaticv1.UseValues, w.namespace, "words", map[string][]byte{"values.yaml": []byte("word: " + canary + "\n")}))
	from := []kubermaticv1.ValuesSource{{SecretRef: &kubermaticv1.KeyReference{Name: "words"}}}
	for i, sources := range [][]kubermaticv1.ValuesSource{from, nil} {
		expect.Change(t, w.seed, object, func(now *kubermaticv1.AddonInstallation) {
			if now.Spec.ValuesFrom = sources; len(sources) > 0 {
				now.Spec.Values = nil
			} else {
				now.Spec.Values = raw(`{"word":"open"}`)
			}
		})
		w.ready(object)
		answer, found := w.record(token, "worded")
		if body := answer.Body.String(); strings.Contains(body, canary) || len(found.Revisions) != 3+i || found.Revisions[0].Masked == "" {
			t.Errorf("after the %d. change: %s", i+1, body)
		}
		if isMasked := found.Masked != ""; isMasked != (i == 0) {
			t.Errorf("after the %d. change values are masked: %t", i+1, isMasked)
		}
		if text := fmt.Sprint(object.Status.LastApplied.Images); strings.Contains(text, canary) || !strings.Contains(text, "quay.io/x/y:1") {
			t.Errorf("after the %d. change images are %s", i+1, text)
		}
	}
	if answer, _ := w.record(w.caller("only-reads", "get"), "worded"); answer.Code != http.StatusNotFound {
		t.Errorf("without the right to update: %d", answer.Code)
	}
}
