package release

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/given"
	"github.com/trellis-addons/trellis/test/long"
)

// limit is how long the installation may take, from the first command to the first add-on that is Ready.
const limit = 10 * time.Minute

// TestAReleaseInstallsAPlatformFromOneRegistry: the guide to the air gap, command by command, out of a release's folder on three bare API
// servers, where no host but this one can be reached. Both managers run from the images that their charts name, an add-on of an image and
// one of a chart are Ready, their pods' images are those of the registry, and the pull Secret is in their namespaces. Red when a chart, a
// manager or the guide leads anywhere else, when an image lacks what its program needs, and when it takes more than ten minutes.
func TestAReleaseInstallsAPlatformFromOneRegistry(t *testing.T) {
	long.Skip(t, "install", "a whole release is made")
	expectNoWayOut(t)
	folder := madeRelease(t)
	sources := fleet.SourcesForTest(t)
	sources.RequireLogin(fleet.SourceRegistry, "robot", password)
	publish(t, sources)
	guide := readGuide(t, sources.Registry, folder)

	begin := time.Now()
	pushImages(t, sources, folder)
	p := newPlatform(t, guide, sources)
	p.installCharts()
	p.connectSeed()
	for _, line := range guide.commands(t, "kubectl --namespace kubermatic create secret generic internal-registry") {
		guide.run(t, masterName, line)
	}
	for _, line := range guide.commands(t, "kubectl --namespace kubermatic create secret docker-registry platform-pull") {
		guide.run(t, seedName, strings.ReplaceAll(line, "robot-of-nodes", "robot"))
	}
	p.connectCluster()
	platform := time.Since(begin)
	p.offer()
	for _, addon := range []string{"of-image", "of-chart"} {
		p.expectInstalled(addon)
	}
	took := time.Since(begin)
	t.Logf("a platform after %.1f s, two add-ons Ready after %.1f s; limit %s", platform.Seconds(), took.Seconds(), limit)
	if took > limit {
		t.Errorf("it took %s", took)
	}
	for _, where := range managed {
		output := guide.run(t, where, "helm test "+chartOf[where]+" --namespace kubermatic --logs=false")
		if !strings.Contains(output, "Succeeded") {
			t.Errorf("helm test of %s says\n%s", chartOf[where], output)
		}
	}
	p.remove()
}

// madeRelease is the folder of the release, whose name is the version.
func madeRelease(t *testing.T) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(os.Getenv(insideVariable), asked+"*"))
	if err != nil || len(found) != 1 {
		t.Fatalf("there are releases %v: %v", found, err)
	}
	return found[0]
}

// expectNoWayOut holds that no interface is up but the loopback one.
func expectNoWayOut(t *testing.T) {
	t.Helper()
	interfaces, err := net.Interfaces()
	expect.NoError(t, err)
	for _, one := range interfaces {
		if one.Flags&net.FlagLoopback == 0 && one.Flags&net.FlagUp != 0 {
			t.Fatalf("there is interface %s", one.Name)
		}
	}
}

// offer makes a catalogue with public names, which is all that an admin of the platform writes.
func (p *platform) offer() {
	p.t.Helper()
	internal := &kubermaticv1.LocalReference{Name: "internal-registry"}
	image := &kubermaticv1.Source{Docker: &kubermaticv1.ImageSource{
		Image: "quay.io/team/addons:v1", Path: "app", SecretRef: internal, CASecretRef: internal,
	}}
	chart := &kubermaticv1.Source{Helm: &kubermaticv1.HelmSource{
		URL: "oci://charts.example.org/stable", Chart: "app", Version: "1.0.0", SecretRef: internal, CASecretRef: internal,
	}}
	expect.Create(p.t, p.client(masterName), given.Catalogue(namespace, "public",
		given.Addon("of-image", given.Version("1.0.0", image)), given.Addon("of-chart", given.Version("1.0.0", chart))))
}

// expectInstalled installs an add-on as a user does.
func (p *platform) expectInstalled(addon string) {
	p.t.Helper()
	installation := p.installation(addon)
	expect.Create(p.t, p.client(seedName), installation)
	expect.HasCondition(p.t, p.client(seedName), installation, expect.Is(kubermaticv1.ConditionReady, "True", kubermaticv1.ReasonReady))
	app := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: addon, Name: "app"}}
	login := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: addon, Name: "platform-pull"}}
	for _, object := range []client.Object{app, login} {
		expect.Read(p.t, p.client(userName), object)
	}
	spec := app.Spec.Template.Spec
	if image, want := spec.Containers[0].Image, p.sources.Registry+"/quay/team/app:1"; image != want {
		p.t.Errorf("%s: the image is %q, want %q", addon, image, want)
	}
	if len(spec.ImagePullSecrets) != 1 || spec.ImagePullSecrets[0].Name != login.Name {
		p.t.Errorf("%s: the pods name %v", addon, spec.ImagePullSecrets)
	}
	if text := string(login.Data[corev1.DockerConfigJsonKey]); !strings.Contains(text, p.sources.Registry) {
		p.t.Errorf("%s: the copy of the login is not for %s", addon, p.sources.Registry)
	}
}

func (p *platform) installation(addon string) *kubermaticv1.AddonInstallation {
	return given.Installation(clusterNamespace, addon, addon, addon, given.NewNamespace)
}

// connectCluster makes a Cluster, and gives its namespace the kubeconfig of the user cluster.
func (p *platform) connectCluster() {
	p.t.Helper()
	made := &kkpv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: clusterName}}
	made.Spec.HumanReadableName, made.Spec.Version = clusterName, fleet.Shared().Cluster(userName).Release
	made.Spec.Cloud = kkpv1.CloudSpec{Datacenter: "here", ProviderName: "bringyourown"}
	expect.Create(p.t, p.client(seedName), made)
	place := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: clusterNamespace}}
	expect.Object(p.t, p.client(seedName), place, func(*corev1.Namespace) error { return nil })
	expect.Create(p.t, p.client(seedName), given.Kubeconfig(clusterNamespace, fleet.Shared().Cluster(userName).Kubeconfig))
	expect.Object(p.t, p.client(seedName), made, func(found *kkpv1.Cluster) error {
		if found.Status.ExtendedHealth.APIServer != kkpv1.HealthUp || found.Status.Versions.ControlPlane == "" {
			return fmt.Errorf("the Cluster says %+v", found.Status)
		}
		return nil
	})
}

// remove takes the platform off again, in the order of the specification.
func (p *platform) remove() {
	p.t.Helper()
	for _, addon := range []string{"of-image", "of-chart"} {
		installation := p.installation(addon)
		expect.Delete(p.t, p.client(seedName), installation)
		expect.Gone(p.t, p.client(seedName), installation)
		app := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: addon, Name: "app"}}
		expect.Gone(p.t, p.client(userName), app)
	}
	cluster := &kkpv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: clusterName}}
	expect.Delete(p.t, p.client(seedName), cluster)
	expect.Gone(p.t, p.client(seedName), cluster)
	for _, process := range p.managers {
		if failure := process.Failure(); failure != nil {
			p.t.Errorf("a manager ended by itself: %v", failure)
		}
	}
	for _, where := range managed {
		p.guide.run(p.t, where, "helm uninstall "+chartOf[where]+" --namespace kubermatic")
		expect.Gone(p.t, p.client(where), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: chartOf[where]}})
	}
}
