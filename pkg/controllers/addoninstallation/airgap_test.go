package addoninstallation_test

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/given"
)

// nowhere resolves no name, and records the requested names.
type nowhere struct {
	mutex sync.Mutex
	asked []string
}

func (n *nowhere) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.asked = append(n.asked, host)
	return nil, errors.New("there is no way out")
}

func (n *nowhere) names() string {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return strings.Join(n.asked, ", ")
}

// TestEverythingComesFromOneRegistry: the guide to the air gap. A catalogue has public names. Content comes from one
// registry with a login, which pods use too, with a Secret in their namespace; content of git and Helm repositories
// comes from mirrors of these. No other host is called, and a host without a mirror is reported. It fails if content,
// images or the login come from elsewhere, or are missing.
func TestEverythingComesFromOneRegistry(t *testing.T) {
	t.Parallel()
	w, _ := pullWorld(t)
	w.sources = fleet.SourcesForTest(t)
	registry, out := w.sources.Registry, &nowhere{}
	templates := strings.NewReplacer("NAME", "gapped", "registry.example.com/app:1", "quay.example.org/team/app:1")
	if _, err := w.sources.Image("quay/team/addons", "v1", map[string]string{"gapped/all.yaml": templates.Replace(pulling)}); err != nil {
		t.Fatal(err)
	}
	chart := webChart("1.0.0")
	chart["templates/pods.yaml"] = templates.Replace(pulling)
	if _, err := w.sources.ChartInRegistry("charts/stable", chart); err != nil {
		t.Fatal(err)
	}
	expect.NoError(t, w.sources.Chart(chart))
	if _, err := w.sources.Commit("gapped-addons", map[string]string{"gapped/all.yaml": templates.Replace(pulling)}); err != nil {
		t.Fatal(err)
	}
	for _, source := range []fleet.Source{fleet.SourceRegistry, fleet.SourceGit, fleet.SourceCharts} {
		w.sources.RequireLogin(source, "robot", "first-word")
	}
	login := given.SourceSecret(w.catalogue, "internal", map[string][]byte{
		"username": []byte("robot"), "password": []byte("first-word"), "ca.crt": w.sources.CA,
	})
	login.Annotations[kubermaticv1.AnnotationHosts] = registry
	w.create(login)
	for _, mirror := range []string{
		"quay.example.org/team=" + registry + "/quay/team", "charts.example.org/stable=" + registry + "/charts/stable",
		"https://git.example.org=" + w.sources.GitURL, "https://charts.example.org/web=" + w.sources.ChartsURL,
	} {
		expect.NoError(t, w.network.Mirrors.Set(mirror))
	}
	w.network.Resolver, w.images, w.renderers = out, []string{"quay.example.org=" + registry + "/quay"}, bothMethods()
	w.start()

	internal := &kubermaticv1.LocalReference{Name: "internal"}
	version := func(method kubermaticv1.Method, source *kubermaticv1.Source) kubermaticv1.AddonVersion {
		return kubermaticv1.AddonVersion{Version: "1.0.0", Template: &kubermaticv1.Template{Method: method}, Source: source}
	}
	w.offer("of-image", kubermaticv1.CatalogueCustom, version(kubermaticv1.MethodGoTemplate, &kubermaticv1.Source{
		Docker: &kubermaticv1.ImageSource{Image: "quay.example.org/team/addons:v1", Path: "gapped", SecretRef: internal, CASecretRef: internal},
	}))
	w.offer("of-chart", kubermaticv1.CatalogueCustom, version(kubermaticv1.MethodHelm, &kubermaticv1.Source{
		Helm: &kubermaticv1.HelmSource{
			URL: "oci://charts.example.org/stable", Chart: "web", Version: "1.0.0", SecretRef: internal, CASecretRef: internal,
		},
	}))
	w.offer("of-git", kubermaticv1.CatalogueCustom, version(kubermaticv1.MethodGoTemplate, &kubermaticv1.Source{
		Git: &kubermaticv1.GitSource{
			Remote: "https://git.example.org/gapped-addons.git", Path: "gapped", SecretRef: internal, CASecretRef: internal,
		},
	}))
	w.offer("of-repository", kubermaticv1.CatalogueCustom, version(kubermaticv1.MethodHelm, &kubermaticv1.Source{
		Helm: &kubermaticv1.HelmSource{
			URL: "https://charts.example.org/web", Chart: "web", Version: "1.0.0", SecretRef: internal, CASecretRef: internal,
		},
	}))
	for _, addon := range []string{"of-image", "of-chart", "of-git", "of-repository"} {
		object := w.install(addon, "")
		w.ready(object)
		w.expectCopy(object.Spec.TargetNamespace, "first-word")
		set := &appsv1.ReplicaSet{}
		expect.Get(t, w.seed, client.ObjectKey{Namespace: object.Spec.TargetNamespace, Name: "gapped"}, set)
		pod := set.Spec.Template.Spec
		if image := pod.Containers[0].Image; image != registry+"/quay/team/app:1" {
			t.Errorf("%s: the image is %q", addon, image)
		}
		if len(pod.ImagePullSecrets) != 1 || pod.ImagePullSecrets[0].Name != w.pull {
			t.Errorf("%s: the pods name %v", addon, pod.ImagePullSecrets)
		}
	}
	if names := out.names(); names != "" {
		t.Errorf("names were asked for: %s", names)
	}

	w.offer("outside", kubermaticv1.CatalogueCustom, version(kubermaticv1.MethodGoTemplate, &kubermaticv1.Source{
		Docker: &kubermaticv1.ImageSource{Image: "elsewhere.example.org/addons:v1"},
	}))
	outside := w.install("outside", "")
	expect.HasCondition(t, w.seed, outside, expect.Is(kubermaticv1.ConditionFetched, "False", kubermaticv1.ReasonFetchFailed))
	if !strings.Contains(out.names(), "elsewhere.example.org") {
		t.Errorf("asked for: %q", out.names())
	}
}
