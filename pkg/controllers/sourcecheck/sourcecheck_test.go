package sourcecheck_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/cmd/wiring"
	"github.com/trellis-addons/trellis/cmd/wiring/contents"
	"github.com/trellis-addons/trellis/cmd/wiring/renderers"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor"
	"github.com/trellis-addons/trellis/pkg/controllers/sourcecheck"
	"github.com/trellis-addons/trellis/pkg/fetch/fetchtest"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
	"github.com/trellis-addons/trellis/pkg/fetch/store"
	"github.com/trellis-addons/trellis/pkg/fleet/mergedcatalogue"
	"github.com/trellis-addons/trellis/pkg/install/resolution"
	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/render/child"
	"github.com/trellis-addons/trellis/test/disk"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/given"
	testrendering "github.com/trellis-addons/trellis/test/rendering"
	kit "github.com/trellis-addons/trellis/test/world"
)

func TestMain(m *testing.M) {
	testrendering.Serve()
	ctrl.SetLogger(logr.Discard())
	fleet.Main(m, fleet.ClusterOptions{Name: "master"}, fleet.ClusterOptions{Name: "north"}, fleet.ClusterOptions{Name: "south"})
}

const (
	// soon is in place of a minute.
	soon = 50 * time.Millisecond
)

// world is a master with two seeds, whose sources are this test's.
type world struct {
	t                   *testing.T
	platform, catalogue string
	master              client.Client
	git                 *fetchtest.Git
	charts              *fetchtest.Charts
	seeds               map[string]*kit.Manager
	// renders are how often each add-on was rendered, on both seeds.
	mutex   sync.Mutex
	renders map[string]int
}

// counting is a method whose renderings are counted.
type counting struct {
	render.Renderer
	w *world
}

func (c counting) Render(ctx context.Context, input render.Input) (render.Result, error) {
	c.w.mutex.Lock()
	c.w.renders[input.Addon]++
	c.w.mutex.Unlock()
	return c.Renderer.Render(ctx, input)
}

var worlds int

func newWorld(t *testing.T, wrappers ...func(http.Handler) http.Handler) *world {
	t.Helper()
	worlds++
	w := &world{
		t: t, platform: fmt.Sprintf("platform-%d", worlds), catalogue: fmt.Sprintf("catalogue-%d", worlds),
		git: fetchtest.ServeGit(t), charts: fetchtest.ServeCharts(t, wrappers...), seeds: map[string]*kit.Manager{},
		renders: map[string]int{},
	}
	for _, name := range []string{"master", "north", "south"} {
		expect.Create(t, w.client(name), kit.Namespace(w.platform))
	}
	w.master = w.client("master")
	expect.Create(t, w.master, given.AuthoritySecret(w.platform, []byte(string(w.git.CA)+string(w.charts.CA))))
	t.Cleanup(func() {
		if err := w.master.DeleteAllOf(context.Background(), &v1.AddonCatalogue{}, client.InNamespace(w.platform)); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *world) client(cluster string) client.Client {
	return kit.Client(w.t, fleet.Shared().Cluster(cluster).Config)
}

// start runs the controller on both seeds until they have their reports, and then the distributor.
func (w *world) start() {
	w.t.Helper()
	for _, name := range []string{"north", "south"} {
		w.startSeed(name)
	}
	for _, name := range []string{"north", "south"} {
		expect.Object(w.t, w.client(name), w.report(), func(*corev1.ConfigMap) error { return nil })
		expect.Create(w.t, w.master, given.Seed(w.platform, name, fleet.Shared().Cluster(name).Kubeconfig)...)
	}
	made := kit.Master(w.t, fleet.Shared().Cluster("master").Config)
	master, err := distributor.NewMaster(made, w.platform)
	expect.NoError(w.t, err)
	made.SetUp(distributor.New(wiring.Distributor(made, master, contents.Kinds(nil), distributor.Options{
		Namespace: w.platform, CatalogueNamespace: w.catalogue, KKPVersion: "v2.31.0", CountEvery: soon,
	})))
	made.Run()
}

func (w *world) report() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.platform, Name: v1.ConfigMapSourceChecks}}
}

func (w *world) startSeed(name string) {
	w.t.Helper()
	made := kit.Seed(w.t, fleet.Shared().Cluster(name).Config, w.catalogue)
	kinds := contents.Kinds(outbound.New(outbound.Options{AllowCIDRs: fetchtest.Loopback}))
	content, err := store.New(store.Options{Folder: disk.TempDir(w.t), Kinds: kinds})
	expect.NoError(w.t, err)
	expect.NoError(w.t, made.Add(content))
	references := resolution.References{
		Secret: func(ctx context.Context, key types.NamespacedName) (*corev1.Secret, error) {
			found := &corev1.Secret{}
			return found, made.GetAPIReader().Get(ctx, key, found)
		},
		SourceKinds: kinds, CatalogueNamespace: w.catalogue,
	}
	dependencies := wiring.SourceCheck(made.Seed, mergedcatalogue.New(logr.Discard()), content, references, sourcecheck.Options{
		Namespace: w.platform, CatalogueNamespace: w.catalogue, Every: soon, FirstPause: soon,
	})
	trial, pool := renderers.Trial(child.Options{CPU: 2 * time.Second, Timeout: 10 * time.Minute})
	w.t.Cleanup(pool.Close)
	for name, method := range trial.Methods {
		trial.Methods[name] = counting{method, w}
	}
	dependencies.Trial = trial
	made.SetUp(sourcecheck.New(dependencies))
	made.Run()
	w.seeds[name] = made
}

// catalogueOf makes a catalogue of the world's own add-ons, with one version each.
func (w *world) catalogueOf(name string, versions ...v1.AddonVersion) *v1.AddonCatalogue {
	w.t.Helper()
	object := &v1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Namespace: w.platform, Name: name}}
	object.Spec.Addons = []v1.Addon{{Name: v1.AddonName(name), Versions: versions}}
	expect.Create(w.t, w.master, object)
	return object
}

func (w *world) chart(version, name, chartVersion string) v1.AddonVersion {
	return given.Version(version, given.Chart(w.charts.URL, name, chartVersion))
}

func folder(version string, method v1.Method, repository *fetchtest.Repository, branch, path string) v1.AddonVersion {
	made := given.Version(version, given.Git(repository.URL, path))
	made.Template.Method, made.Source.Git.Ref = method, &v1.GitRef{Branch: branch}
	return made
}

// expectSources waits until SourcesReady of a catalogue is so, with these words.
func (w *world) expectSources(object *v1.AddonCatalogue, status, reason string, words ...string) {
	w.t.Helper()
	expect.Object(w.t, w.master, object, func(object *v1.AddonCatalogue) error {
		if err := expect.Condition(object, v1.ConditionSourcesReady, status, reason, words...); err != nil {
			return err
		}
		return expect.Condition(object, v1.ConditionReady, "True", v1.ReasonDistributed)
	})
}

// column is what column SOURCES has for a catalogue.
func (w *world) column(name string) string {
	w.t.Helper()
	config := rest.CopyConfig(fleet.Shared().Cluster("master").Config)
	version := v1.GroupVersion
	config.GroupVersion, config.APIPath = &version, "/apis"
	config.NegotiatedSerializer = serializer.NewCodecFactory(wiring.Scheme()).WithoutConversion()
	asks, err := rest.RESTClientFor(config)
	expect.NoError(w.t, err)
	raw, err := asks.Get().Namespace(w.platform).Resource("addoncatalogues").Name(name).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(w.t.Context())
	expect.NoError(w.t, err)
	var table metav1.Table
	expect.NoError(w.t, json.Unmarshal(raw, &table))
	for i, column := range table.ColumnDefinitions {
		if column.Name == "Sources" {
			return fmt.Sprint(table.Rows[0].Cells[i])
		}
	}
	w.t.Fatal("there is no column Sources")
	return ""
}

// Each usual slip is named on the master with add-on and version before anybody installs it, and mended
// ones become True. Over two seeds each source is fetched once, after a restart and for an unrelated
// change none again. Red without sourcecheck, where every seed checks all, and where a manager that
// starts does not read its own report.
func TestSlipsAreReportedBeforeAnybodyInstallsThem(t *testing.T) {
	w := newWorld(t)
	w.charts.Add("good", "1.0.0", nil)
	w.charts.Add("mended", "1.0.0", nil)
	repository := w.git.Repository(t, "addons")
	repository.Commit("main", map[string]string{"web/x.yaml": configMap, "web/README.md": "", "docs/README.md": ""})
	good := w.catalogueOf("good", w.chart("1.0.0", "good", "1.0.0"), folder("2.0.0", v1.MethodGoTemplate, repository, "main", "web"))
	unreachable := w.chart("1.0.0", "good", "1.0.0")
	unreachable.Source.Helm.URL = "https://127.0.0.1:1"
	registry := fetchtest.ServeRegistry(t)
	registry.Chart("charts/good", "1.0.0", fetchtest.Chart("good", "1.0.0", nil))
	tag := folder("1.0.0", v1.MethodGoTemplate, repository, "", "web")
	tag.Source.Git.Ref.Tag = "v1.0.0"
	ofURL := func(url, version string) v1.AddonVersion {
		made := w.chart("1.0.0", "good", version)
		made.Source.Helm.URL = url
		return made
	}
	image := given.Version("1.0.0", &v1.Source{Docker: &v1.ImageSource{
		Image: "docker://" + registry.Host + "/web:1", CASecretRef: &v1.LocalReference{Name: given.Authority},
	}})
	slips := map[string]struct {
		version      v1.AddonVersion
		reason, word string
	}{
		"wrong-chart":   {w.chart("1.0.0", "goood", "1.0.0"), v1.ReasonArtifactNotFound, `chart "goood"`},
		"wrong-version": {w.chart("1.0.0", "good", "1.0.1"), v1.ReasonArtifactNotFound, `version "1.0.1"`},
		"wrong-branch":  {folder("1.0.0", v1.MethodGoTemplate, repository, "master", "web"), v1.ReasonArtifactNotFound, `branch "master"`},
		"wrong-path":    {folder("1.0.0", v1.MethodGoTemplate, repository, "main", "wep"), v1.ReasonArtifactNotFound, `path "wep"`},
		"no-manifests":  {folder("1.0.0", v1.MethodGoTemplate, repository, "main", "docs"), v1.ReasonArtifactNotFound, "*.yaml"},
		"no-chart":      {folder("1.0.0", v1.MethodHelm, repository, "main", "web"), v1.ReasonArtifactNotFound, "Chart.yaml"},
		"unreachable":   {unreachable, v1.ReasonFetchFailed, "https://127.0.0.1:1"},
		"wrong-tag":     {tag, v1.ReasonArtifactNotFound, `tag "v1.0.0"`},
		"plain-http":    {ofURL(strings.Replace(w.charts.URL, "https", "http", 1), "1.0.0"), v1.ReasonArtifactRefused, "plain http is allowed only with"},
		"an-index":      {ofURL(w.charts.URL+"/index.yaml", "1.0.0"), v1.ReasonArtifactNotFound, "/index.yaml"},
		"a-range":       {ofURL(w.charts.URL, "2.x"), v1.ReasonArtifactNotFound, "known versions: 1.0.0"},
		"oci-tag":       {ofURL("oci://"+registry.Host+"/charts", "1.0.1"), v1.ReasonArtifactNotFound, `tag "1.0.1" in repository`},
		"docker-scheme": {image, v1.ReasonArtifactRefused, "docker://"},
	}
	wrong := map[string]*v1.AddonCatalogue{}
	for name, slip := range slips {
		wrong[name] = w.catalogueOf(name, slip.version)
	}
	w.start()
	for name, slip := range slips {
		says := fmt.Sprintf("add-on %q version %q: ", name, "1.0.0")
		w.expectSources(wrong[name], "False", slip.reason, says, slip.word)
		if column := w.column(name); !strings.Contains(column, says) || !strings.Contains(column, slip.word) {
			t.Errorf("column SOURCES of %s is %q", name, column)
		}
	}
	w.expectSources(good, "True", v1.ReasonSourcesReady, "every source was fetched")

	repository.Commit("master", map[string]string{"web/x.yaml": configMap}) // the branch was forgotten
	w.expectSources(wrong["wrong-branch"], "True", v1.ReasonSourcesReady)
	w.edit(wrong["wrong-chart"], func(version *v1.AddonVersion) { version.Source.Helm.Chart = "mended" })
	w.expectSources(wrong["wrong-chart"], "True", v1.ReasonSourcesReady)
	w.expectArchives(map[string]int{"good": 1, "mended": 1})

	for _, name := range []string{"north", "south"} {
		w.seeds[name].Stop()
		w.startSeed(name)
	}
	w.charts.Add("further", "1.0.0", nil)
	w.edit(good, func(version *v1.AddonVersion) { version.Deprecated = "old" })
	further := w.catalogueOf("further", w.chart("1.0.0", "further", "1.0.0"))
	w.expectSources(further, "True", v1.ReasonSourcesReady)
	w.expectSources(good, "True", v1.ReasonSourcesReady)
	w.expectArchives(map[string]int{"good": 1, "mended": 1, "further": 1})
}

const (
	configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"
	password  = "swordfish-1234"
)

// Slips of rendering are named as those of sources are, with file and line, and without values; what needs
// values of a user or facts of a cluster is no slip. What was rendered is not rendered again while its
// content and version are the same, over two seeds; what failed is rendered once more after a restart,
// although its source is asked again and again; what ends its renderer is told, and delays no other. Red where nothing is rendered, where
// a fault has no content, and where an error has values.
func TestRenderSlipsAreReportedBeforeAnybodyInstallsThem(t *testing.T) {
	w := newWorld(t)
	repository := w.git.Repository(t, "addons")
	files := map[string]string{
		"good": configMap, "syntax": configMap + "data: {{ if }}\n", "function": configMap + "data: {{ toYam .Variables }}\n", "kind": "a: 1\n",
		"endless": "{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}\n", "secret": "{{ .Variables.password }}: 1\n{{ .Variables.password }}: 2\n",
		"needs": configMap + "data: {a: '{{ .Variables.host }}', b: '{{ .Cluster.Labels.team }}'}\n", "later": configMap,
	}
	commit := func() {
		paths := map[string]string{}
		for name, text := range files {
			paths[name+"/x.yaml"] = text
		}
		repository.Commit("main", paths)
	}
	commit()
	for name, text := range map[string]string{
		"good": configMap, "template": "\n{{ include \"missing\" . }}\n", "yaml": "a: [\n", "requires": "{{ required \"set host\" .Values.host }}\n",
	} {
		w.charts.Add("chart-"+name, "1.0.0", map[string]string{"templates/x.yaml": text})
	}
	inGit := func(path string) v1.AddonVersion {
		return folder("1.0.0", v1.MethodGoTemplate, repository, "main", path)
	}
	secret, field := inGit("secret"), inGit("needs")
	secret.Values = &runtime.RawExtension{Raw: []byte(`{"password":"` + password + `"}`)}
	field.Template.FormSpec = []v1.FormField{{DisplayName: "Host", InternalName: "host", Type: v1.FormText, Required: true}}
	untried := w.chart("2.0.0", "chart-requires", "1.0.0")
	endless := w.catalogueOf("endless", inGit("endless")) // the first to be checked
	good := w.catalogueOf("good", inGit("good"), w.chart("2.0.0", "chart-good", "1.0.0"))
	needs := w.catalogueOf("needs", field, untried, folder("3.0.0", v1.MethodGoTemplate, repository, "main", "needs"))
	slips := map[string]struct {
		version      v1.AddonVersion
		reason, word string
	}{
		"syntax":   {inGit("syntax"), v1.ReasonRenderFailed, "x.yaml:4: missing value for if"},
		"function": {inGit("function"), v1.ReasonRenderFailed, `x.yaml:4: function "toYam" not defined`},
		"kind":     {inGit("kind"), v1.ReasonRenderFailed, "x.yaml:1: the rendered manifest has no apiVersion"},
		"secret":   {secret, v1.ReasonRenderFailed, "twice"},
		"template": {w.chart("1.0.0", "chart-template", "1.0.0"), v1.ReasonRenderFailed, "templates/x.yaml:2: "},
		"yaml":     {w.chart("1.0.0", "chart-yaml", "1.0.0"), v1.ReasonRenderFailed, "templates/x.yaml"},
	}
	wrong := map[string]*v1.AddonCatalogue{}
	for name, slip := range slips {
		wrong[name] = w.catalogueOf(name, slip.version)
	}
	w.start()
	w.expectSources(good, "True", v1.ReasonSourcesReady, "every source was fetched")
	w.expectSources(needs, "True", v1.ReasonSourcesReady, "not rendered, since they need a cluster or values: 3 of 3 versions")
	for name, slip := range slips {
		w.expectSources(wrong[name], "False", slip.reason, fmt.Sprintf("add-on %q version %q: ", name, "1.0.0"), slip.word)
	}
	w.expectSources(endless, "False", v1.ReasonLimitExceeded, "2s of cpu")

	for _, name := range []string{"north", "south"} {
		w.seeds[name].Stop()
		w.startSeed(name)
	}
	before := w.charts.Count(http.MethodGet, "/chart-template-1.0.0.tgz")
	expect.Eventually(t, expect.Patience, func() error {
		if again := w.charts.Count(http.MethodGet, "/chart-template-1.0.0.tgz"); again < before+2 {
			return fmt.Errorf("it was asked for %d times again", again-before)
		}
		return w.rendered(map[string]int{
			"good": 2, "needs": 2, "endless": 2, "syntax": 2, "function": 2, "kind": 2, "secret": 2, "template": 2, "yaml": 2,
		})
	})
	w.expectNoSecrets()

	files["syntax"] = configMap
	commit()
	w.expectSources(wrong["syntax"], "True", v1.ReasonSourcesReady)
	w.edit(wrong["secret"], func(version *v1.AddonVersion) { version.Source.Git.Path = "later" })
	w.expectSources(wrong["secret"], "True", v1.ReasonSourcesReady)
}

// rendered says how often add-ons were rendered, unless each was that often.
func (w *world) rendered(want map[string]int) error {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if fmt.Sprint(w.renders) != fmt.Sprint(want) {
		return fmt.Errorf("rendered %v, want %v", w.renders, want)
	}
	return nil
}

// expectNoSecrets fails where a report or a status has the password of a version's values.
func (w *world) expectNoSecrets() {
	w.t.Helper()
	var catalogues v1.AddonCatalogueList
	expect.List(w.t, w.master, &catalogues, client.InNamespace(w.platform))
	said := ""
	for _, one := range catalogues.Items {
		said += fmt.Sprint(one.Status)
	}
	for _, name := range []string{"north", "south"} {
		report := w.report()
		expect.Read(w.t, w.client(name), report)
		said += fmt.Sprint(report.Data)
	}
	if strings.Contains(said, password) {
		w.t.Errorf("a value of a version is told: %s", said)
	}
}

func (w *world) edit(object *v1.AddonCatalogue, change func(*v1.AddonVersion)) {
	w.t.Helper()
	expect.Change(w.t, w.master, object, func(object *v1.AddonCatalogue) {
		change(&object.Spec.Addons[0].Versions[0])
	})
}

// expectArchives fails unless each chart was fetched that often.
func (w *world) expectArchives(want map[string]int) {
	w.t.Helper()
	got := map[string]int{}
	for _, request := range w.charts.Requests() {
		if name, isArchive := strings.CutSuffix(request.Path, "-1.0.0.tgz"); isArchive {
			got[strings.TrimPrefix(name, "/")]++
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		w.t.Errorf("charts were fetched %v, want %v", got, want)
	}
}

// A catalogue of sources that never answer keeps no other from being checked, and is not told to be
// wrong meanwhile. Red where a catalogue may have several checks at a time.
func TestASlowCatalogueDelaysNoOther(t *testing.T) {
	ended := make(chan struct{})
	asked := make(chan struct{}, 100)
	w := newWorld(t, func(charts http.Handler) http.Handler {
		return http.HandlerFunc(func(to http.ResponseWriter, request *http.Request) {
			if strings.Contains(request.URL.Path, "slow") {
				asked <- struct{}{}
				select {
				case <-ended:
				case <-request.Context().Done():
				}
			}
			charts.ServeHTTP(to, request)
		})
	})
	defer close(ended)
	var versions []v1.AddonVersion
	for i := range 20 {
		w.charts.Add(fmt.Sprintf("slow-%d", i), "1.0.0", nil)
		versions = append(versions, w.chart(fmt.Sprintf("1.0.%d", i), fmt.Sprintf("slow-%d", i), "1.0.0"))
	}
	slow := w.catalogueOf("slow", versions...)
	w.start()
	<-asked // both seeds are at it
	<-asked
	w.charts.Add("quick", "1.0.0", nil)
	quick := w.catalogueOf("quick", w.chart("1.0.0", "quick", "1.0.0"))
	w.expectSources(quick, "True", v1.ReasonSourcesReady)
	w.expectSources(slow, "Unknown", v1.ReasonSourcesUnchecked, "20 of 20 versions")
	if more := len(asked); more > 0 {
		t.Errorf("%d more sources of one catalogue are asked for at a time", more)
	}
}
