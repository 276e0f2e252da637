package web_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/web/config"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/given"
)

// proxied starts the web view behind a proxy that sends a token with each request, and returns the proxy's URL.
func proxied(t testing.TB, w *seed, token string) string {
	t.Helper()
	var site *site
	proxy := httptest.NewServer(http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		(&httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(made *httputil.ProxyRequest) {
			made.SetURL(&url.URL{Scheme: "http", Host: site.address})
			made.Out.Host = made.In.Host
			made.Out.Header.Set("Authorization", "Bearer "+token)
		}}).ServeHTTP(writer, request)
	}))
	t.Cleanup(proxy.Close)
	site = open(t, settings(t, w, func(made *config.Config) {
		made.PublicURL, made.Login = proxy.URL, config.Login{Kind: config.LoginProxy}
		made.Seeds = append(made.Seeds, config.Seed{Server: config.Server{Server: silent(t)}, Name: "far", Query: silent(t)})
	}))
	return proxy.URL
}

// Pictures of all pages, in the folder of $TRELLIS_PICTURES, by the browser of $CHROMIUM.
func TestPictures(t *testing.T) {
	folder, chromium := os.Getenv("TRELLIS_PICTURES"), os.Getenv("CHROMIUM")
	if folder == "" || chromium == "" {
		t.Skip("set TRELLIS_PICTURES to a folder and CHROMIUM to a browser")
	}
	w := newSeed(t, "pictures")
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
	base, namespace := proxied(t, w, admin()), w.namespace
	cluster, installation := "/clusters/one/"+namespace+"/pictures", "/clusters/one/"+namespace+"/installations/web"
	for name, path := range map[string]string{
		"overview": "/", "catalogue": "/catalogue", "addon": "/catalogue/web", "clusters": "/clusters", "cluster": cluster + "?to=1.37.0",
		"install": cluster + "/install/web", "installation": installation, "objects": installation + "?show=objects", "values": valuesOf(installation),
		"failing": "/clusters/one/" + namespace + "/installations/unknown", "installations": "/installations", "sets": "/sets", "set": "/sets/monitoring",
		"catalogues": "/catalogues", "catalogue-text": "/catalogues/web", "missing": "/none", "login": "/login",
	} {
		for _, look := range []struct {
			name          string
			width, scheme int
		}{{"light-1440", 1440, 1}, {"dark-390", 390, 0}} {
			file := filepath.Join(folder, name+"-"+look.name+".png")
			picture(t, chromium, base+path, file, fmt.Sprintf("--window-size=%d,1500", look.width), fmt.Sprintf("--blink-settings=preferredColorScheme=%d", look.scheme))
		}
	}
}

func readInto(t testing.TB, w *seed, name string) *v1.AddonInstallation {
	found := w.named(name)
	expect.Read(t, w, found)
	return found
}

func picture(t testing.TB, chromium, url, file string, more ...string) {
	t.Helper()
	arguments := append([]string{
		"--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--user-data-dir=" + t.TempDir(), "--timeout=8000", "--screenshot=" + file,
	}, append(more, url)...)
	command := exec.CommandContext(t.Context(), chromium, arguments...)
	command.WaitDelay = time.Minute
	if output, err := command.CombinedOutput(); err != nil {
		t.Errorf("%s: %v: %s", url, err, output)
	}
}
