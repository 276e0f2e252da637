//go:build browser

package web_test

import (
	"cmp"
	_ "embed" // axe-core
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/web/config"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/given"
)

// fronted starts the web view and a proxy in front, and returns the proxy's URL. With a token the proxy sends it with each request, without
// one users log in by theirs. A second seed never answers.
func fronted(t testing.TB, w *seed, token string) string {
	t.Helper()
	var site *site
	proxy := httptest.NewServer(http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		(&httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(made *httputil.ProxyRequest) {
			made.SetURL(&url.URL{Scheme: "http", Host: site.address})
			made.Out.Host = made.In.Host
			if token != "" {
				made.Out.Header.Set("Authorization", "Bearer "+token)
			}
		}}).ServeHTTP(writer, request)
	}))
	t.Cleanup(proxy.Close)
	site = open(t, settings(t, w, func(made *config.Config) {
		made.PublicURL = proxy.URL
		if token != "" {
			made.Login = config.Login{Kind: config.LoginProxy}
			made.Seeds = append(made.Seeds, config.Seed{Server: config.Server{Server: silent(t)}, Name: "far", Query: silent(t)})
		}
	}))
	return proxy.URL
}

//go:embed testdata/axe/axe.min.js
var axe string

// violation is what axe-core found on a page.
type violation struct {
	ID, Help string
	Nodes    []struct{ HTML, FailureSummary string }
}

// accessible checks the page with axe-core, and that nothing is beside the window.
func (b *tab) accessible(page string) {
	b.t.Helper()
	evaluate[bool](b, axe+";true")
	for _, one := range evaluate[[]violation](b, `axe.run(document, {resultTypes: ['violations']}).then(found => found.violations)`) {
		for _, node := range one.Nodes {
			b.t.Errorf("%s: %s (%s): %.300s: %s", page, one.Help, one.ID, node.HTML, node.FailureSummary)
		}
	}
	b.within(page)
}

// within checks that the page is not wider than the window.
func (b *tab) within(page string) {
	b.t.Helper()
	if width := evaluate[[]int](b, `[document.documentElement.scrollWidth, innerWidth]`); width[0] > width[1] {
		b.t.Errorf("%s is %d px wide in a window of %d px", page, width[0], width[1])
	}
}

// Red when axe-core finds a fault on a page in one of its states, light or dark; when a page is wider than a window of 320 px; when the first
// view of a page takes more than 90 KiB or six requests; or when its policy refuses something. Pictures go to $TRELLIS_PICTURES.
func TestBrowserShowsPages(t *testing.T) {
	folder := cmp.Or(os.Getenv("TRELLIS_PICTURES"), t.TempDir())
	expect.NoError(t, os.MkdirAll(folder, 0o755))
	w := newSeed(t, "pictures")
	w.furnish()
	base, namespace := fronted(t, w, admin()), w.namespace
	cluster, installation := "/clusters/one/"+namespace+"/pictures", "/clusters/one/"+namespace+"/installations/web"
	b := openTab(t, base)
	for name, path := range map[string]string{
		"overview": "/", "catalogue": "/catalogue", "catalogue-empty": "/catalogue?search=none", "addon": "/catalogue/web", "clusters": "/clusters",
		"cluster": cluster + "?to=1.37.0", "install": cluster + "/install/web", "installation": installation, "objects": installation + "?show=objects",
		"values": valuesOf(installation), "failing": "/clusters/one/" + namespace + "/installations/unknown", "installations": "/installations",
		"installations-empty": "/installations?search=none", "sets": "/sets", "set": "/sets/monitoring", "catalogues": "/catalogues",
		"catalogue-text": "/catalogues/web", "missing": "/none",
	} {
		b.look(1440, "light")
		b.measure()
		b.open(path)
		b.until(`document.readyState === 'complete'`)
		if requests, bytes := b.measured(); requests > 6 || bytes > 90<<10 {
			t.Errorf("%s takes %d requests and %d bytes, more than 6 and %d", name, requests, bytes, 90<<10)
		}
		for _, look := range []struct {
			width  int
			scheme string
		}{{1440, "light"}, {1440, "dark"}, {390, "light"}, {390, "dark"}} {
			b.look(look.width, look.scheme)
			at := fmt.Sprintf("%s-%s-%d", name, look.scheme, look.width)
			b.accessible(at)
			picture, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
			expect.NoError(t, errors.Join(err, os.WriteFile(filepath.Join(folder, at+".png"), picture, 0o600)))
		}
		b.look(320, "light")
		b.within(name)
	}
}

// Red when a text of an author, a tenant or a user cluster runs in a browser, or makes a page wider than the window.
func TestBrowserRunsNoHostileText(t *testing.T) {
	w := newSeed(t, "runs")
	pages := w.turnHostile()
	b := openTab(t, fronted(t, w, admin()))
	for _, path := range pages {
		for _, width := range []int{1440, 320} {
			b.look(width, "dark")
			b.open(path)
			b.until(`document.readyState === 'complete'`)
			b.within(path)
		}
	}
}

// furnish makes add-ons, installations in several states, and a set that waits for approval.
func (w *seed) furnish() {
	t := w.t
	t.Helper()
	w.publish("web")
	for name, description := range map[string]string{
		"cert-manager": "Issues and renews certificates for workloads.", "prometheus": "Monitors the cluster and its workloads, with alerts.",
		"ingress-nginx": "Routes HTTP requests to Services.", "velero": "Backs up objects and volumes.",
	} {
		made := given.Addon(name, given.Version("1.4.0", given.Git("https://git.example.com/addons.git", "")), given.Version("1.3.2", given.Git("https://git.example.com/addons.git", "")))
		made.Description, made.SupportedBy = description, "Platform team"
		expect.Create(t, w, given.WithOrigins(given.Merged(w.platform, v1.CatalogueCustom, made), map[string]map[string]string{
			"1.4.0": {"digest": "sha256:a", "catalogue": "tools"}, "1.3.2": {"digest": "sha256:b", "catalogue": "tools"},
		}))
	}
	expect.Create(t, w, given.Installation(w.namespace, "web", "web", w.space, given.In("1.0.0"), given.NewNamespace, given.Values(`{"replicas":3,"mode":"fast"}`)))
	expect.Create(t, w, given.Installation(w.namespace, "prometheus", "prometheus", "monitoring"))
	expect.Create(t, w, given.Installation(w.namespace, "unknown", "misspelt", "apps"))
	paused := given.Installation(w.namespace, "paused", "velero", "backup")
	paused.Spec.Paused = true
	expect.Create(t, w, paused)
	set := given.Set(w.platform, "monitoring", "prometheus")
	expect.Create(t, w, set)
	expect.ChangeStatus(t, w, set, func(now *v1.AddonSet) {
		now.Status.ObservedGeneration, now.Status.Revision, now.Status.PendingCount = now.Generation, "5f2c9a", 31
		meta.SetStatusCondition(&now.Status.Conditions, metav1.Condition{
			Type: v1.ConditionReady, Status: metav1.ConditionFalse, Reason: "AwaitingApproval", Message: "group production waits for annotation approve",
		})
		counts := func(selected, current, moving, behind, failed int32) v1.ClusterCounts {
			return v1.ClusterCounts{Selected: selected, Current: current, Moving: moving, Behind: behind, Failed: failed}
		}
		all := counts(71, 38, 1, 31, 1)
		now.Status.Counts = &all
		now.Status.Groups = []v1.GroupStatus{
			{Name: "canary", State: v1.GroupDone, Counts: counts(4, 4, 0, 0, 0)}, {Name: "staging", State: v1.GroupOpen, Counts: counts(36, 34, 1, 0, 1)},
			{Name: "production", State: v1.GroupAwaitingApproval, Counts: counts(31, 0, 0, 31, 0)},
		}
		now.Status.Pending = []v1.PendingChange{{Item: "prometheus", Change: v1.ChangeUpdate, From: "1.3.2", To: "1.4.0", Clusters: 31, Example: "shop-eu"}}
		now.Status.Clusters = []v1.SetClusterStatus{{Name: "shop-test", Seed: "one", State: v1.ClusterFailed, Item: "prometheus", Reason: "RolledBack", Message: "Deployment monitoring/prometheus did not become healthy"}}
	})
	expect.Eventually(t, expect.Patience, func() error {
		return expect.Condition(readInto(t, w, "web"), v1.ConditionReady, "True", "")
	})
}

func readInto(t testing.TB, w *seed, name string) *v1.AddonInstallation {
	found := w.named(name)
	expect.Read(t, w, found)
	return found
}
