package web_test

import (
	"bufio"
	"context"
	"maps"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/given"
)

// settingsAre waits until the user cluster has these settings.
func (w *seed) settingsAre(want map[string]string) {
	w.t.Helper()
	found := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.space, Name: "settings"}}
	expect.Object(w.t, w, found, func(now *corev1.ConfigMap) error {
		for key, value := range want {
			if now.Data[key] != value {
				return &dataError{now.Data}
			}
		}
		return nil
	})
}

type dataError struct{ data map[string]string }

func (e *dataError) Error() string { return "the settings are " + strings.Join(pairsOf(e.data), ", ") }

func pairsOf(of map[string]string) (all []string) {
	for key, value := range of {
		all = append(all, key+"="+value)
	}
	return all
}

// Red when a user without scripts can't find an add-on, fill in its form, preview, install, see it become Ready, change a value, upgrade,
// return to the lower version, or uninstall; when a page shows another state than the cluster's; or when the token is on a page or in the log.
func TestTheMainJobWithoutScripts(t *testing.T) {
	w := newSeed(t, "job")
	w.publish("web")
	token := w.userWith(w.namespace, "user", rulesOfGuide(t)...)
	site := open(t, settings(t, w))
	b := site.as(token)
	b.shows("/", "Overview", "No installation is failing")
	b.shows("/installations", "No add-on is installed")
	b.shows("/clusters", "job", "1.36.3")
	listing := b.shows("/catalogue?search=PAGES", "Web server", "2.0.0", "Team Web")
	b.shows("/catalogue?search=nothing", "No add-on has this text")
	addon := b.shows(listing.link("Web server"), "Replicas", "2.0.0", "1.0.0", "tools")
	form := b.shows(addon.link("Install in job"), "How many pods serve pages", "required")
	action, values := form.form("Preview")
	values.Set("version", "1.0.0")
	values.Set("field.replicas", "three")
	b.post(action, values).has(http.StatusOK, "Replicas must be a whole number")
	values.Set("field.replicas", "3")
	values.Set("values", "# mine\nmode: fast\n")
	var previewed *answer
	expect.Eventually(t, patience, func() error {
		previewed = b.post(action, values)
		if !strings.Contains(previewed.text(), "ConfigMap web-job/settings") {
			return &dataError{map[string]string{"page": previewed.text()}}
		}
		return nil
	})
	previewed.has(http.StatusOK, "What it would do", "Create", "# mine", "kubectl addons install web@1.0.0").hasNot("three")
	if err := w.Get(t.Context(), clientKey(w, "web"), &v1.AddonInstallation{}); err == nil {
		t.Fatal("a preview wrote the installation")
	}
	action, values = previewed.form("Install")
	if got := values.Get("values"); got != "# mine\nmode: fast\nreplicas: 3\n" {
		t.Errorf("the YAML is %q", got)
	}
	page := b.post(action, values)
	page.has(http.StatusOK, "web", "Steps")
	path := page.path
	b.eventually(path, "web ● Ready", "Installed 1.0.0", "Pause", "Reconcile now", "Uninstall")
	w.settingsAre(map[string]string{"version": "1.0.0", "replicas": "3", "mode": "fast"})
	b.shows("/installations?search=web", "web", "1.0.0", "● Ready", "update 2.0.0")
	b.eventually(path+"?show=objects", "ConfigMap web-job/settings", "replicas")

	// A value changes; a page that was made before is refused, and shows both.
	edit := b.shows(b.get(path).link("Change values or version"), "Change web")
	action, values = edit.form("Save")
	stale := maps.Clone(values)
	values.Set("field.replicas", "5")
	b.post(action, values).has(http.StatusOK, "Steps")
	w.settingsAre(map[string]string{"replicas": "5"})
	stale.Set("field.mode", "safe")
	expect.Eventually(t, patience, func() error {
		refused := b.post(action, stale)
		if refused.status != http.StatusConflict {
			return &dataError{map[string]string{"page": refused.text()}}
		}
		refused.has(http.StatusConflict, "Changed in the meantime", "replicas: 5", "replicas: 3")
		return nil
	})
	w.settingsAre(map[string]string{"replicas": "5", "mode": "fast"})

	// An upgrade, and back.
	b.eventually(path, "web ● Ready")
	for _, version := range []string{"2.0.0", "1.0.0"} {
		edit = b.shows(valuesOf(path))
		action, values = edit.form("Save")
		values.Set("version", version)
		values.Set("lower", "true")
		b.post(action, values).has(http.StatusOK, "Steps")
		w.settingsAre(map[string]string{"version": version, "replicas": "5"})
		b.eventually(path, "web ● Ready", "Installed "+version)
	}

	// Paused by the list, and resumed by the page.
	list := b.shows("/installations")
	action, values = list.form("Pause")
	values.Add("one", "one/"+w.namespace+"/web")
	b.post(action, values).has(http.StatusOK, "1 of 1 installation done")
	paused := b.eventually(path, "Paused", "Resume")
	action, values = paused.form("Resume")
	b.post(action, values).has(http.StatusOK)
	b.post(action, values).has(http.StatusConflict, "Changed in the meantime")

	// Uninstalled, after the name is confirmed.
	last := b.eventually(path, "web ● Ready")
	action, values = last.form("Uninstall")
	values.Set("confirm", "wob")
	b.post(action, values).has(http.StatusBadRequest, "enter the name web")
	values.Set("confirm", "web")
	b.post(action, values)
	expect.Gone(t, w, w.named("web"))
	expect.Gone(t, w, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.space, Name: "settings"}})
	b.eventually(path, "not found")
	if strings.Contains(b.pages.String()+site.logged(), token) {
		t.Error("the token is on a page or in the log")
	}
}

// Red when a change of an installation does not reach a page's stream, a stream needs no login, or it does not end with the program.
func TestPagesAreLive(t *testing.T) {
	w := newSeed(t, "live")
	w.publish("web")
	site := open(t, settings(t, w))
	b := site.as(w.user(w.namespace, "user"))
	made := w.named("web")
	made.Spec.AddonRef, made.Spec.Paused = v1.AddonReference{Name: "web"}, true
	given.Values(`{"mode":"fast"}`)(made)
	expect.Create(t, w, made)
	page := b.eventually("/installations", "Paused")
	stream := ""
	for _, one := range page.all("div") {
		if at := attribute(one, "sse-connect"); at != "" {
			stream = at
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	response, err := b.client.Do(b.request(http.MethodGet, stream, nil).WithContext(ctx))
	expect.NoError(t, err)
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("the stream answers %d", response.StatusCode)
	}
	lines, seen := bufio.NewScanner(response.Body), ""
	until := func(text string) {
		t.Helper()
		for lines.Scan() {
			if seen += lines.Text() + "\n"; strings.Contains(lines.Text(), text) {
				return
			}
		}
		t.Fatalf("the stream ends without %q: %v: %s", text, lines.Err(), seen)
	}
	until("event: again")
	expect.Change(t, w, made, func(now *v1.AddonInstallation) { now.Spec.Paused = false })
	until("event: row")
	until(`id="row_one_cluster-live_web"`)
	until("2.0.0")
	part := b.request(http.MethodGet, "/installations", nil)
	part.Header.Set("HX-Request", "true")
	part.Header.Set("HX-Target", "live")
	if got := b.do(part); !strings.HasPrefix(got.body, `<div id="live">`) || strings.Contains(got.body, "<html") {
		t.Errorf("a part is %.200q", got.body)
	}
	if got := site.browser().get(stream); got.status != http.StatusUnauthorized {
		t.Errorf("without a login: %d", got.status)
	}
}
