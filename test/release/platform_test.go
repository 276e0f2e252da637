package release

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/test/charts"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/given"
	"github.com/trellis-addons/trellis/test/pod"
	kit "github.com/trellis-addons/trellis/test/world"
)

const (
	namespace        = "kubermatic"
	clusterName      = "one"
	clusterNamespace = "cluster-one"
	distributor      = "trellis-distributor"
)

// managed are the API servers with a manager, in the order in which they get one and lose it, and chartOf says which.
var (
	managed = []string{masterName, seedName}
	chartOf = map[string]string{masterName: "trellis-master", seedName: "trellis-seed"}
)

// platform is what the guide installs.
type platform struct {
	t        *testing.T
	guide    guide
	sources  *fleet.Sources
	clients  map[string]client.Client
	managers []*fleet.Process
	// transport reaches the registry.
	transport http.RoundTripper
}

func newPlatform(t *testing.T, followed guide, sources *fleet.Sources) *platform {
	t.Helper()
	p := &platform{t: t, guide: followed, sources: sources, clients: map[string]client.Client{}, transport: sources.Transport(t)}
	for _, name := range []string{masterName, seedName, userName} {
		p.clients[name] = kit.Client(t, fleet.Shared().Cluster(name).Config)
	}
	followed.writeFiles(t)
	for file, content := range map[string]string{"ca.crt": string(sources.CA), "here.yaml": here} {
		expect.NoError(t, os.WriteFile(filepath.Join(followed.folder, file), []byte(content), 0o600))
	}
	return p
}

// here are values that the page does not have: there is no KKP, and the registry is on this machine.
const here = `standalone: {enabled: true}
sources: {allowCIDRs: [127.0.0.0/8]}
`

func (p *platform) client(where string) client.Client { return p.clients[where] }

// installCharts runs the page's commands for the programs on the master and on the seed, and has nodes run what they made.
func (p *platform) installCharts() {
	p.t.Helper()
	for _, where := range managed {
		p.guide.run(p.t, where, "kubectl apply --server-side -f crds-standalone.yaml")
		p.playJobs(where)
	}
	for _, line := range p.guide.commands(p.t, "kubectl create namespace kubermatic") {
		for _, where := range managed {
			command, said, isSaid := strings.Cut(line, "# on ")
			if isSaid && said != map[string]string{masterName: "the master", seedName: "each seed"}[where] {
				continue
			}
			if strings.HasPrefix(line, "helm upgrade --install") {
				command += " --values here.yaml"
				if where == masterName {
					command += " --set standalone.kkpVersion=2.31.0"
				}
			}
			p.guide.run(p.t, where, command)
		}
	}
	for _, where := range managed {
		p.runManager(where)
	}
}

// node is where an API server's pods run.
func (p *platform) node(where string) *pod.Node {
	return &pod.Node{
		Fleet: fleet.Shared(), Cluster: fleet.Shared().Cluster(where), Client: p.client(where), Folder: filepath.Join(p.guide.home, "pods"),
		Enter: filepath.Join(os.Getenv(insideVariable), "bin", pod.Enter),
	}
}

// pullAndRun starts a container of its image, as a node does.
func (p *platform) pullAndRun(where string, container pod.Container) (*fleet.Process, error) {
	node := p.node(where)
	var err error
	if container.Image, err = node.Pull(p.t.Context(), container, p.transport); err != nil {
		return nil, err
	}
	return node.Run(p.t.Context(), container)
}

// playJobs runs the pods of a chart's Jobs: what hooks of Helm wait for.
func (p *platform) playJobs(where string) {
	p.t.Helper()
	node := p.node(where)
	charts.PlayJobs(p.t, node, func(container *pod.Container, _ string) (err error) {
		container.Image, err = node.Pull(p.t.Context(), *container, p.transport)
		return err
	})
}

// runManager runs the pod of a chart's Deployment. Webhooks are asked at this machine's address, since there is no network of pods.
func (p *platform) runManager(where string) {
	p.t.Helper()
	chart, manager := chartOf[where], &appsv1.Deployment{}
	if err := p.client(where).Get(p.t.Context(), client.ObjectKey{Namespace: namespace, Name: chart}, manager); err != nil {
		p.t.Fatalf("reading Deployment %q on %s: %v", chart, where, err)
	}
	image := manager.Spec.Template.Spec.Containers[0].Image
	if !strings.HasPrefix(image, p.sources.Registry+"/trellis/") || !strings.Contains(image, "@sha256:") {
		p.t.Errorf("%s runs %q: not of the registry, or not by digest", chart, image)
	}
	webhooks := fleet.Address(p.t)
	p.leadHere(where, webhooks)
	arguments := append(charts.AdmissionFlags(chart, namespace, webhooks), "--health-probe-bind-address=0", "--metrics-bind-address=0")
	if where == seedName {
		arguments = append(arguments, "--query-bind-address=0")
	}
	log := filepath.Join(p.t.TempDir(), "log")
	process, err := p.pullAndRun(where, pod.Container{
		Name: chart, Namespace: namespace, Spec: manager.Spec.Template.Spec, Arguments: arguments, Log: log,
	})
	expect.NoError(p.t, err)
	p.managers = append(p.managers, process)
	p.t.Cleanup(func() {
		process.Kill()
		if p.t.Failed() {
			p.t.Logf("the end of the log of %s:\n%s", chart, fleet.Tail(log, 20))
		}
	})
}

// leadHere has the webhooks of a chart asked at an address.
func (p *platform) leadHere(where, at string) {
	p.t.Helper()
	configuration := &unstructured.Unstructured{}
	configuration.SetGroupVersionKind(admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration"))
	err := expect.PastConflicts(p.t.Context(), func() error { // the manager writes its authority there
		err := p.client(where).Get(p.t.Context(), client.ObjectKey{Name: namespace + "." + chartOf[where]}, configuration)
		if err == nil {
			err = charts.AskAt([]*unstructured.Unstructured{configuration}, at)
		}
		if err == nil {
			err = p.client(where).Update(p.t.Context(), configuration)
		}
		return err
	})
	if err != nil {
		p.t.Fatalf("having the webhooks of %s asked at %s: %v", chartOf[where], at, err)
	}
}

// connectSeed gives the master a kubeconfig of the seed, with the release's rights.
func (p *platform) connectSeed() {
	p.t.Helper()
	p.guide.run(p.t, seedName, "kubectl apply -f seed-rights.yaml")
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: distributor}}
	token := expect.Token(p.t, p.client(seedName), account)
	kubeconfig, err := fleet.Shared().Cluster(seedName).KubeconfigFor(token)
	expect.NoError(p.t, err)
	expect.Create(p.t, p.client(masterName), given.Seed(namespace, seedName, kubeconfig)...)
}
