package charts

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chartutil"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trellis-addons/trellis/pkg/web/config"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/pod"
)

const webChart = "trellis-web"

// leastOfWeb are the values that the chart of the web view has no default for.
var leastOfWeb = map[string]any{
	"publicURL": "https://addons.example.com",
	"seeds": []any{map[string]any{
		"name": "europe", "server": "https://europe.example.com:6443", "query": "https://query.europe.example.com",
	}},
}

// withLeast adds the values that a chart needs at least.
func withLeast(chart string, values map[string]any) map[string]any {
	if chart != webChart {
		return values
	}
	merged := maps.Clone(leastOfWeb)
	maps.Copy(merged, values)
	return merged
}

// webRenderings are those of the web view. The last one has every setting.
var webRenderings = []rendering{
	{chart: webChart, why: "with the least", values: leastOfWeb},
	{chart: webChart, why: "with a ConfigMap", values: map[string]any{
		"configMap": "web", "keysSecret": "keys", "service": map[string]any{"type": "NodePort", "nodePort": 30443, "port": 8443},
		"login":     map[string]any{"oidc": map[string]any{"secret": "oidc"}},
		"resources": map[string]any{"limits": map[string]any{"memory": 4294967296}, "requests": map[string]any{"cpu": 1}},
		"publicURL": "https://addons.example.com:8443", "ingress": map[string]any{"enabled": true},
	}},
	{chart: webChart, why: "with every setting", values: everyWebSetting("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")},
}

// everyWebSetting are the settings that all charts have, and those of the web view, with an authority in PEM.
func everyWebSetting(authority string) map[string]any {
	values := map[string]any{
		"publicURL": "https://addons.example.com/",
		"master":    map[string]any{"server": "https://master.example.com:6443", "ca": authority},
		"seeds": []any{
			map[string]any{
				"name": "europe", "server": "https://europe.example.com:6443", "ca": authority,
				"query": "https://query.europe.example.com", "queryCA": authority,
			},
			map[string]any{"name": "asia", "server": "https://proxy.example.com/asia", "query": "https://query.asia.example.com:8443/"},
		},
		"login": map[string]any{"kind": "OIDC", "oidc": map[string]any{
			"issuer": "https://login.example.com", "clientID": "trellis-web", "secret": "web-oidc", "ca": authority, "scopes": []any{"groups"},
		}},
		"tlsSecret": "web-tls",
		"ingress": map[string]any{
			"enabled": true, "className": "nginx", "tlsSecret": "addons-tls", "annotations": map[string]any{"own": "yes"},
		},
		"httpRoute": map[string]any{"enabled": true, "parentRefs": []any{map[string]any{"name": "public", "namespace": "gateways"}}},
		"networkPolicy": map[string]any{
			"enabled": true, "webFrom": from("one"), "metricsFrom": from("one"),
			"egress": []any{map[string]any{"ports": []any{map[string]any{"port": 443}}}},
		},
	}
	for _, name := range []string{
		"global", "image", "replicas", "commonLabels", "commonAnnotations", "podLabels", "podAnnotations", "extraEnv", "extraVolumes",
		"extraVolumeMounts", "nodeSelector", "tolerations", "affinity", "topologySpreadConstraints", "priorityClassName",
	} {
		values[name] = everySetting[name]
	}
	values["extraArgs"] = []any{"--bind-address=:8080"}
	metrics := maps.Clone(everySetting["metrics"].(map[string]any))
	delete(metrics, "dashboards")
	values["metrics"] = metrics
	return values
}

// TestTheWebViewHasNoRights: red when a pod of the web view gets a token, or when the chart has a role, a binding or a Secret.
func TestTheWebViewHasNoRights(t *testing.T) {
	for _, r := range webRenderings {
		_, objects := render(t, r)
		for _, object := range objects {
			if strings.Contains(object.GetKind(), "Role") || object.GetKind() == "Secret" {
				t.Errorf("%s: it has %s %s", r, object.GetKind(), object.GetName())
			}
		}
		if mounts := deployment(t, objects).Spec.Template.Spec.AutomountServiceAccountToken; mounts == nil || *mounts {
			t.Errorf("%s: its pods get a token", r)
		}
	}
}

// TestTheConfigurationOfTheWebViewIsValid: red when the program refuses the configuration that the chart makes of its values, when a value
// does not reach it, or when a folder that it names is mounted elsewhere.
func TestTheConfigurationOfTheWebViewIsValid(t *testing.T) {
	authority, err := fleet.NewAuthority("test")
	expect.NoError(t, err)
	certificate, key, err := authority.Serving("web", nil, "addons.example.com")
	expect.NoError(t, err)
	secrets := map[string]map[string]string{
		"trellis-web-keys": {"1": strings.Repeat("k", 64)}, "web-oidc": {"secret": "hidden\n"},
		"web-tls": {"tls.crt": string(certificate), "tls.key": string(key)},
	}
	pem := string(authority.PEM)
	full := rendering{chart: webChart, why: "with real authorities", values: everyWebSetting(pem)}
	loaded := []*config.Loaded{loadMounted(t, webRenderings[0], secrets), loadMounted(t, full, secrets)}
	if loaded[0].Certificate != nil || loaded[0].Master != nil || loaded[1].Certificate == nil || loaded[1].Secret != "hidden" {
		t.Error("certificate, master or secret of the client: they are not as the values have them")
	}
	europe := config.Seed{
		Name: "europe", Server: config.Server{Server: "https://europe.example.com:6443"}, Query: "https://query.europe.example.com",
	}
	seeds := []config.Seed{
		{Name: "europe", Server: config.Server{Server: europe.Server.Server, CA: pem}, Query: europe.Query, QueryCA: pem},
		{Name: "asia", Server: config.Server{Server: "https://proxy.example.com/asia"}, Query: "https://query.asia.example.com:8443/"},
	}
	for i, want := range []config.Config{
		{PublicURL: "https://addons.example.com", Seeds: []config.Seed{europe}, Login: config.Login{Kind: config.LoginToken}},
		{
			PublicURL: "https://addons.example.com/", Seeds: seeds,
			Master: &config.Master{Server: config.Server{Server: "https://master.example.com:6443", CA: pem}, Namespace: "kubermatic"},
			Login: config.Login{Kind: config.LoginOIDC, OIDC: &config.OIDC{
				Issuer: "https://login.example.com", ClientID: "trellis-web", CA: pem, Scopes: []string{"groups"},
			}},
		},
	} {
		got := loaded[i].Config
		got.KeysFolder, got.TLSFolder = "", ""
		if got.Login.OIDC != nil {
			got.Login.OIDC.SecretFile = ""
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// loadMounted reads the configuration in the folders that a pod of the web view has, of Secrets with these contents.
func loadMounted(t *testing.T, r rendering, secrets map[string]map[string]string) *config.Loaded {
	t.Helper()
	_, objects := render(t, r)
	root, made := t.TempDir(), deployment(t, objects).Spec.Template.Spec
	contents := map[string]map[string]string{}
	for _, volume := range made.Volumes {
		if volume.ConfigMap != nil {
			configured := typed[corev1.ConfigMap](t, objects, "ConfigMap")
			text := strings.ReplaceAll(configured.Data["config.yaml"], "/etc/trellis-web", filepath.Join(root, "etc", "trellis-web"))
			contents[volume.Name] = map[string]string{"config.yaml": text}
		} else {
			contents[volume.Name] = secrets[volume.Secret.SecretName]
		}
	}
	for _, mount := range made.Containers[0].VolumeMounts {
		expect.NoError(t, os.MkdirAll(filepath.Join(root, mount.MountPath), 0o700))
		for name, content := range contents[mount.Name] {
			expect.NoError(t, os.WriteFile(filepath.Join(root, mount.MountPath, name), []byte(content), 0o600))
		}
	}
	file, found := strings.CutPrefix(made.Containers[0].Args[0], "--config=")
	loaded, err := config.Load(filepath.Join(root, file))
	if !found || err != nil {
		t.Fatalf("%s: %v", r, err)
	}
	return loaded
}

// TestTheWebViewIsReached: red when the Service, the routes, the probes or the NetworkPolicy lead to a port that the program does not
// listen at, or when the policy opens one to others than were named.
func TestTheWebViewIsReached(t *testing.T) {
	for _, r := range webRenderings {
		_, objects := render(t, r)
		made := deployment(t, objects)
		container := made.Spec.Template.Spec.Containers[0]
		listens := map[int32]string{}
		for _, argument := range container.Args[:3] {
			if name, address, found := strings.Cut(argument, "-bind-address="); found {
				port, _ := portOf(t, address)
				listens[port] = name
			}
		}
		if want := map[int32]string{8080: "-", 8081: "--metrics"}; !maps.Equal(listens, want) {
			t.Errorf("%s: it listens at %v, expected %v", r, listens, want)
		}
		for _, probe := range []*corev1.Probe{container.LivenessProbe, container.ReadinessProbe} {
			if port := resolved(t, probe.HTTPGet.Port, made); listens[port] != "--metrics" {
				t.Errorf("%s: a probe asks port %d", r, port)
			}
		}
		service := typed[corev1.Service](t, slices.DeleteFunc(slices.Clone(objects), isMetrics), "Service")
		if port := resolved(t, service.Spec.Ports[0].TargetPort, made); listens[port] != "-" {
			t.Errorf("%s: the Service leads to port %d", r, port)
		}
		expectRouted(t, r, service, objects)
		if r.why == "with every setting" {
			policy := typed[networkingv1.NetworkPolicy](t, objects, "NetworkPolicy")
			if diff := cmp.Diff(map[int32]string{8080: oneApp, 8081: oneApp}, open(t, policy, made)); diff != "" {
				t.Errorf("%s: open (-want +got):\n%s", r, diff)
			}
		}
	}
}

func isMetrics(object *unstructured.Unstructured) bool {
	return strings.HasSuffix(object.GetName(), "-metrics")
}

// expectRouted holds that Ingress and HTTPRoute, where there are some, lead the host of publicURL to the Service.
func expectRouted(t *testing.T, r rendering, service corev1.Service, objects []*unstructured.Unstructured) {
	t.Helper()
	if has(objects, "Ingress", service.Name) {
		ingress := typed[networkingv1.Ingress](t, objects, "Ingress")
		rule, want := ingress.Spec.Rules[0], service.Spec.Ports[0].Name
		if to := rule.HTTP.Paths[0].Backend.Service; rule.Host != "addons.example.com" || to.Name != service.Name || to.Port.Name != want {
			t.Errorf("%s: the Ingress leads %q to %v", r, rule.Host, to)
		}
	}
	at := slices.IndexFunc(objects, func(object *unstructured.Unstructured) bool { return object.GetKind() == "HTTPRoute" })
	if at < 0 {
		return
	}
	want := map[string]any{
		"hostnames": []any{"addons.example.com"}, "parentRefs": []any{map[string]any{"name": "public", "namespace": "gateways"}},
		"rules": []any{map[string]any{"backendRefs": []any{map[string]any{"name": service.Name, "port": float64(service.Spec.Ports[0].Port)}}}},
	}
	if diff := cmp.Diff(any(want), objects[at].Object["spec"]); diff != "" {
		t.Errorf("%s: the HTTPRoute (-want +got):\n%s", r, diff)
	}
}

// TestWrongValuesOfTheWebViewAreRefused: red where a value is taken with which no pod would start, or no page would be reached.
func TestWrongValuesOfTheWebViewAreRefused(t *testing.T) {
	const seed, other = `{name: a, server: "https://a", query: "https://b"}`, `{name: b, server: "https://a", query: "https://b"}`
	const least = "publicURL: https://a\nseeds: [" + seed + ", " + other + "]\n"
	for values, says := range map[string]string{
		"seeds: [" + seed + "]":                                         "publicURL is missing",
		"publicURL: https://a":                                          "seeds is empty",
		"publicURL: http://addons.example.com":                          "at '/publicURL",
		"publicURL: https://a/path":                                     "at '/publicURL",
		"publicURL: https://user@a":                                     "at '/publicURL",
		"publicURL: https://a\nseeds: [" + seed + ", " + seed + "]":     `seeds has "a" twice`,
		"seeds: [{name: a, server: 'http://a', query: 'https://b'}]":    "at '/seeds/0/server",
		"seeds: [{name: a, server: 'https://a'}]":                       "missing property 'query'",
		"seeds: [{name: A_b, server: 'https://a', query: 'https://b'}]": "at '/seeds/0/name",
		"seeds: [{name: a, kubeconfig: x}]":                             "kubeconfig",
		"master: {server: 'http://a'}":                                  "at '/master/server",
		"login: {kind: None}":                                           "at '/login/kind",
		least + "login: {kind: OIDC}":                                   "login.kind OIDC needs",
		least + "login: {oidc: {issuer: 'https://a'}}":                  "login.oidc is for login.kind OIDC",
		"login: {oidc: {issuer: 'http://a'}}":                           "at '/login/oidc/issuer",
		"configMap: web\nseeds: [" + seed + "]":                         "configMap has the whole configuration",
		"configMap: web\ningress: {enabled: true}":                      "ingress and httpRoute need publicURL",
		least + "httpRoute: {enabled: true}":                            "httpRoute.enabled needs httpRoute.parentRefs",
		least + "extraVolumes: [{name: keys, emptyDir: {}}]":            `extraVolumes has "keys"`,
		"keysSecret: ''":                                                "at '/keysSecret",
		"misspelt: 1":                                                   "misspelt",
	} {
		given, err := chartutil.ReadValues([]byte(values))
		expect.NoError(t, err)
		if _, err := renderFiles(load(t, webChart), given); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want a refusal with %q", values, err, says)
		}
	}
	for _, values := range []string{
		"publicURL: http://127.0.0.1:8080\nseeds: [" + seed + "]", "publicURL: https://[fd00::1]:8443\nseeds: [" + other + "]", "configMap: web",
		least + "resources: {}\nlogin: {kind: Proxy}",
	} {
		given, err := chartutil.ReadValues([]byte(values))
		expect.NoError(t, err)
		if _, err := renderFiles(load(t, webChart), given); err != nil {
			t.Errorf("%s: %v", values, err)
		}
	}
}

// TestAlertsOfTheWebViewFire: red when an alert is silent over figures that it is about, or fires over those of a program at work.
func TestAlertsOfTheWebViewFire(t *testing.T) {
	_, objects := render(t, webRenderings[2])
	var queries []string
	for _, rule := range alertsOf(t, objects) {
		queries = append(queries, rule["expr"].(string))
	}
	for _, test := range []struct {
		why                string
		valid, unreachable int
		firing             []int
	}{{"at work", 1, 2, []int{0, 0}}, {"an invalid configuration", 0, 2, []int{1, 0}}, {"a server that does not answer", 1, 90, []int{0, 1}}} {
		var scrapes []scrape
		for i := range 11 {
			text := fmt.Sprintf("trellis_web_config_valid %d\ntrellis_web_calls_total{server=\"seed a\",outcome=\"unreachable\"} %d\n",
				test.valid, test.unreachable*i/10)
			scrapes = append(scrapes, scrape{
				At: time.Unix(1_800_000_000+int64(i)*60, 0), Labels: map[string]string{"namespace": namespace, "pod": "0"}, Text: text,
			})
		}
		for i, got := range answers(t, scrapes, queries) {
			if got.Problem != "" || got.Firing != test.firing[i] {
				t.Errorf("%s: %d fire of %s, want %d; %s", test.why, got.Firing, got.Query, test.firing[i], got.Problem)
			}
		}
	}
}

// TestTheNotesOfTheWebViewHaveTheKeys: red when the notes do not say how to create the Secret that the pods wait for.
func TestTheNotesOfTheWebViewHaveTheKeys(t *testing.T) {
	for _, r := range webRenderings {
		files, err := renderFiles(load(t, webChart), r.values)
		expect.NoError(t, err)
		notes, secret := files[webChart+"/templates/NOTES.txt"], "trellis-web-keys"
		if r.values["keysSecret"] != nil {
			secret = r.values["keysSecret"].(string)
		}
		if !strings.Contains(notes, "create secret generic "+secret+" --from-literal=1=") {
			t.Errorf("%s: the notes do not create %s:\n%s", r, secret, notes)
		}
	}
}

// TestTheWebViewRunsInItsPod: red when the program can't read its configuration or keys in a pod that has no token, no root and no right to
// write, when it does not know a user of the API server, or does not answer probes.
func TestTheWebViewRunsInItsPod(t *testing.T) {
	c, server, pages, own := connect(t), fleet.Shared().Cluster(cluster), fleet.Address(t), fleet.Address(t)
	to := map[string]any{"server": server.Config.Host, "ca": string(server.Config.CAData)}
	r := rendering{chart: webChart, why: "at work", values: map[string]any{
		"publicURL": "http://" + pages, "master": to, "keysSecret": "keys-of-pod",
		"seeds": []any{map[string]any{"name": "one", "server": to["server"], "ca": to["ca"], "query": "https://" + fleet.Address(t)}},
	}}
	_, objects := render(t, r)
	for _, object := range objects {
		apply(t, c, object)
	}
	keys := map[string][]byte{"1": []byte(strings.Repeat("k", 64))}
	expect.Create(t, c, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "keys-of-pod"}, Data: keys})
	path := program(t, webChart)
	process, err := nodeOf(t, server, c, filepath.Dir(path)).Run(t.Context(), pod.Container{
		Name: webChart, Namespace: namespace, Spec: deployment(t, objects).Spec.Template.Spec, Program: path,
		Arguments: []string{"--bind-address=" + pages, "--metrics-bind-address=" + own}, Log: logOf(r),
	})
	expect.NoError(t, err)
	t.Cleanup(process.Kill)
	expect.NoError(t, process.Await(t.Context(), "the web view to be ready", func(ctx context.Context) error {
		_, err := fleet.Get(ctx, "http://"+own+"/healthz")
		return err
	}))
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for token, want := range map[string]int{server.Config.BearerToken: http.StatusSeeOther, "foreign": http.StatusUnauthorized} {
		response, err := browser.PostForm("http://"+pages+"/login", url.Values{"token": {token}})
		expect.NoError(t, err)
		expect.NoError(t, response.Body.Close())
		if response.StatusCode != want {
			t.Errorf("a login is answered with %d, expected %d", response.StatusCode, want)
		}
	}
}
