package web_test

import (
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/web/config"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/given"
	"github.com/trellis-addons/trellis/test/world"
)

func clientKey(w *seed, name string) client.ObjectKey {
	return client.ObjectKey{Namespace: w.namespace, Name: name}
}

// Red when bad input is accepted, changes something, or has no message that says what is wrong.
func TestBadInputIsRefused(t *testing.T) {
	w := newSeed(t, "refused")
	w.publish("web")
	site := open(t, settings(t, w))
	token := w.user(w.namespace, "user")
	b := site.as(token)
	install := "/clusters/one/" + w.namespace + "/refused/install/web"
	whole := func() url.Values {
		_, values := b.shows(install).form("Install")
		return values
	}
	for _, test := range []struct {
		why, path string
		form      url.Values
		change    func(*http.Request)
		status    int
		says      string
	}{
		{"another host", "/", nil, func(r *http.Request) { r.Host = "evil.example" }, http.StatusMisdirectedRequest, "a different address"},
		{"a cross-site POST", install, whole(), func(r *http.Request) {
			r.Header.Set("Origin", "https://evil.example")
			r.Header.Set("Sec-Fetch-Site", "cross-site")
		}, http.StatusForbidden, "another site"},
		{"a form of 1 MiB", install, url.Values{"values": {strings.Repeat("a", 1<<20)}}, nil, http.StatusRequestEntityTooLarge, "320 KiB"},
		{"a key twice", install, with(whole(), "values", "a: 1\na: 2\n"), nil, http.StatusUnprocessableEntity, "line 2"},
		{"values that are a list", install, with(whole(), "values", "- a\n"), nil, http.StatusUnprocessableEntity, "map"},
		{"a wrong name", install, with(whole(), "name", "No!"), nil, http.StatusUnprocessableEntity, "metadata.name"},
		{"a wrong namespace", install, with(whole(), "target", "No!"), nil, http.StatusUnprocessableEntity, "spec.targetNamespace"},
		{"a version that is not offered", install, with(whole(), "version", "9.9.9"), nil, http.StatusBadRequest, "9.9.9"},
		{"a made-up cursor", "/installations?after=%00made-up&seed=one", nil, nil, http.StatusOK, "after"},
		{"an unknown state", "/installations?state=Happy", nil, nil, http.StatusOK, "state"},
		{"an unknown seed", "/installations?seed=nine", nil, nil, http.StatusNotFound, "no seed nine"},
		{"a path that climbs", "/clusters/one/%2e%2e/installations/web", nil, nil, http.StatusNotFound, "not a valid name"},
		{"a cluster that there is not", "/clusters/one/cluster-none/none", nil, nil, http.StatusNotFound, "nothing here"},
		{"an unknown add-on", "/catalogue/none", nil, nil, http.StatusNotFound, "none"},
		{"an unknown page", "/none", nil, nil, http.StatusNotFound, "no such page"},
		{"an unknown action", "/clusters/one/" + w.namespace + "/installations/none", url.Values{"do": {"explode"}}, nil, http.StatusNotFound, "none"},
		{"nothing selected", "/installations", url.Values{"do": {"pause"}}, nil, http.StatusBadRequest, "at least one"},
		{"too many selected", "/installations", url.Values{"do": {"pause"}, "one": make([]string, 101)}, nil, http.StatusBadRequest, "100"},
		{"an action for one only", "/installations", url.Values{"do": {"uninstall"}, "one": {"a/b/c"}}, nil, http.StatusBadRequest, "several"},
		{"a kept form of another key", install + "?kept=1", url.Values{"sealed": {"AAAA"}}, nil, http.StatusBadRequest, "hour"},
	} {
		t.Run(test.why, func(t *testing.T) {
			method := http.MethodGet
			if test.form != nil {
				method = http.MethodPost
			}
			request := b.request(method, test.path, test.form)
			if test.change != nil {
				test.change(request)
			}
			got := b.do(request)
			if got.status != test.status || !strings.Contains(got.text(), test.says) {
				t.Errorf("%d, want %d with %q:\n%s", got.status, test.status, test.says, got.text())
			}
		})
	}
	for _, token := range []string{"wrong", "a b", "", strings.Repeat("x", 9<<10)} {
		if got := site.browser().post("/login", url.Values{"token": {token}}); got.status != http.StatusUnauthorized {
			t.Errorf("token %.10q: %d", token, got.status)
		}
	}
	forged := site.browser()
	request := forged.request(http.MethodGet, "/clusters", nil)
	request.AddCookie(&http.Cookie{Name: "trellis-0", Value: "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"})
	forged.do(request).has(http.StatusUnauthorized, "Log in")
	var all v1.AddonInstallationList
	expect.NoError(t, w.List(t.Context(), &all, client.InNamespace(w.namespace)))
	if len(all.Items) > 0 {
		t.Errorf("something was written: %v", all.Items)
	}
	if strings.Contains(site.logged()+b.pages.String(), token) {
		t.Error("the token is on a page or in the log")
	}
}

func with(of url.Values, name, value string) url.Values {
	of.Set(name, value)
	of.Set("do", "install")
	return of
}

// Red when a form is lost that was sent after the login ended, or is accepted without one.
func TestAFormOutlivesItsLogin(t *testing.T) {
	w := newSeed(t, "kept")
	w.publish("web")
	site := open(t, settings(t, w))
	token := w.user(w.namespace, "user")
	b := site.as(token)
	action, values := b.shows("/clusters/one/" + w.namespace + "/kept/install/web").form("Preview")
	values.Set("field.replicas", "7")
	b.post("/logout", url.Values{}).has(http.StatusOK, "Log in")
	kept := b.post(action, values).has(http.StatusUnauthorized, "form is kept").hasNot(`"7"`)
	action, values = kept.form("Send again")
	b.post(action, values).has(http.StatusUnauthorized)
	b.post("/login", url.Values{"token": {token}})
	shown := b.post(action, values).has(http.StatusOK)
	if _, again := shown.form("Install"); again.Get("field.replicas") != "7" {
		t.Errorf("the form is %v", again)
	}
	other := strings.Replace(action, "/web", "/other", 1)
	b.post(other, values).has(http.StatusBadRequest)
}

// Red when a user of one cluster sees or changes anything of another, when a user without rights sees anything, when a viewer is offered an
// action, or when a removed right still shows something.
func TestUsersSeeTheirOwnClustersOnly(t *testing.T) {
	w := newSeed(t, "mine")
	w.publish("web")
	foreign := "cluster-foreign"
	world.UserCluster(t, w, "foreign", nil)
	expect.Create(t, w, given.Installation(foreign, "canary", "web", "web"))
	own := given.Installation(w.namespace, "web", "web", w.space, given.NewNamespace, func(made *v1.AddonInstallation) { made.Spec.Paused = true })
	expect.Create(t, w, own)
	site := open(t, settings(t, w))
	viewer := rbacv1.PolicyRule{
		Verbs: []string{"get", "list"}, APIGroups: []string{v1.GroupVersion.Group}, Resources: []string{"addoninstallations", "addoncatalogues"},
	}
	users := map[string]*browser{
		"user": site.as(w.user(w.namespace, "user")), "viewer": site.as(w.userWith(w.namespace, "viewer", viewer)),
		"nobody": site.as(w.userWith(w.namespace, "nobody")),
	}
	target := "/clusters/one/" + foreign + "/installations/canary"
	for name, b := range users {
		for _, path := range []string{"/", "/catalogue", "/clusters", "/installations", "/installations?namespace=" + foreign, "/sets"} {
			b.get(path).hasNot("canary", ">foreign<")
		}
		for _, path := range []string{
			target, valuesOf(target), "/clusters/one/" + foreign, "/clusters/one/" + foreign + "/foreign",
			"/clusters/one/" + foreign + "/foreign/install/web", "/catalogues", "/sets/none",
		} {
			if got := b.get(path); got.status != http.StatusNotFound {
				t.Errorf("%s gets %s: %d:\n%s", name, path, got.status, got.text())
			}
		}
		for _, form := range []url.Values{{"do": {"pause"}, "shown": {"1"}}, {"do": {"uninstall"}, "confirm": {"canary"}, "shown": {"1"}}} {
			if got := b.post(target, form); got.status != http.StatusNotFound {
				t.Errorf("%s acts on a foreign installation: %d", name, got.status)
			}
		}
		b.post("/installations", url.Values{"do": {"pause"}, "one": {"one/" + foreign + "/canary"}}).has(http.StatusOK, "0 of 1")
	}
	mine := "/clusters/one/" + w.namespace + "/installations/web"
	users["user"].eventually(mine, "Paused", "Resume", "Uninstall", "Change values")
	users["viewer"].shows(mine, "Paused").hasNot("Resume", "Uninstall", "Change values")
	users["nobody"].get(mine).has(http.StatusNotFound)
	users["nobody"].shows("/clusters", "no cluster that you may see")
	_, values := users["user"].get(mine).form("Resume")
	if got := users["viewer"].post(mine, values); got.status != http.StatusNotFound || !strings.Contains(got.text(), "forbidden") {
		t.Errorf("a viewer resumes: %d %s", got.status, got.text())
	}
	adminSees := site.as(admin())
	adminSees.shows("/catalogues", "web")
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "user"}}
	expect.Delete(t, w, binding)
	expect.Eventually(t, patience, func() error {
		if got := users["user"].get(mine); got.status != http.StatusNotFound {
			return &dataError{map[string]string{"page": got.text()}}
		}
		return nil
	})
}

// silent is a server that accepts connections and says nothing.
func silent(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			if connection, err := listener.Accept(); err != nil {
				return
			} else {
				go func() { _, _ = io.Copy(io.Discard, connection) }()
			}
		}
	}()
	return "https://" + listener.Addr().String()
}

// Red when a seed that hangs, or refuses the token, keeps the others from being shown, or is not named.
func TestOtherSeedsAreShown(t *testing.T) {
	w := newSeed(t, "partly")
	w.publish("web")
	expect.Create(t, w, given.Installation(w.namespace, "web", "web", w.space, given.NewNamespace))
	other, hung := fleet.Shared().Cluster("other"), silent(t)
	site := open(t, settings(t, w, func(made *config.Config) {
		for range 2 {
			name := "hung-" + string(rune('a'+len(made.Seeds)))
			made.Seeds = append(made.Seeds, config.Seed{Server: config.Server{Server: hung}, Name: name, Query: hung})
		}
		made.Seeds = append(made.Seeds, config.Seed{
			Server: config.Server{Server: other.URL(), CA: string(other.Config.CAData)}, Name: "stranger", Query: other.URL(), QueryCA: string(other.Config.CAData),
		})
	}))
	b := site.as(w.user(w.namespace, "user"))
	b.eventually("/installations", "web", "seed hung-b does not answer", "hung-c", "stranger", "does not accept your login")
	b.eventually("/installations", "web", "did not answer the last calls")
	b.shows("/", "No answer")
	b.get("/clusters/hung-b/x/y").has(http.StatusServiceUnavailable, "does not answer")
	response, err := http.Get("http://" + site.own + "/metrics")
	expect.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	expect.NoError(t, err)
	if !strings.Contains(string(text), `trellis_web_calls_total{outcome="unreachable"`) || !strings.Contains(string(text), "trellis_web_requests_total") {
		t.Errorf("metrics are %.500s", text)
	}
}
