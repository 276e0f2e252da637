package certmanager

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	chartkit "github.com/trellis-addons/trellis/test/charts"
	"github.com/trellis-addons/trellis/test/disk"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/pod"
	kit "github.com/trellis-addons/trellis/test/world"
)

// namespace is the platform's.
const namespace = "kubermatic"

// platform is an API server with the objects of a chart.
type platform struct {
	t      *testing.T
	chart  string
	client client.Client
	port   int
	// spec is that of the manager's pod.
	spec corev1.PodSpec
	log  string
}

// install applies a chart whose webhooks have a certificate by cert-manager, and whose Service leads here.
func install(t *testing.T, chart string) *platform {
	t.Helper()
	port, err := fleet.FreePort()
	expect.NoError(t, err)
	p := &platform{
		t: t, chart: chart, client: kit.Client(t, fleet.Shared().Cluster(chart).Config), port: port,
		log: filepath.Join(t.TempDir(), "log"),
	}
	made, err := programs()
	expect.NoError(t, err)
	expect.NoError(t, fleet.InstallCRDs(t.Context(), fleet.Shared().Cluster(chart).Config, made.crds))
	expect.Create(t, p.client, kit.Namespace(namespace))
	_, objects, err := chartkit.Render(chart, namespace, map[string]any{
		"standalone": map[string]any{"enabled": true}, "webhook": map[string]any{"certManager": map[string]any{"enabled": true}},
	})
	expect.NoError(t, err)
	for _, object := range objects {
		p.leadHere(object)
		configuration := client.ApplyConfigurationFromUnstructured(object)
		if err := p.client.Apply(t.Context(), configuration, client.FieldOwner("helm"), client.ForceOwnership); err != nil {
			t.Fatalf("applying %s %q: %v", object.GetKind(), object.GetName(), err)
		}
	}
	return p
}

// leadHere changes what says where the webhooks are, and keeps the pod of the manager.
func (p *platform) leadHere(object *unstructured.Unstructured) {
	p.t.Helper()
	var err error
	switch {
	case object.GetKind() == "Service" && object.GetName() == p.chart+"-webhook":
		object.Object["spec"] = map[string]any{"type": "ExternalName", "externalName": "localhost"}
	case object.GetKind() == "ValidatingWebhookConfiguration":
		webhooks, _, _ := unstructured.NestedSlice(object.Object, "webhooks")
		for _, entry := range webhooks {
			webhook, _ := entry.(map[string]any)
			expect.NoError(p.t, unstructured.SetNestedField(webhook, int64(p.port), "clientConfig", "service", "port"))
		}
		err = unstructured.SetNestedSlice(object.Object, webhooks, "webhooks")
	case object.GetKind() == "Deployment":
		p.spec, err = pod.SpecOf(object)
	}
	expect.NoError(p.t, err)
}

// runCertManager starts its controllers, with the rights of an admin.
func (p *platform) runCertManager() {
	p.t.Helper()
	made, err := programs()
	expect.NoError(p.t, err)
	kubeconfig := filepath.Join(p.t.TempDir(), "kubeconfig")
	expect.NoError(p.t, os.WriteFile(kubeconfig, fleet.Shared().Cluster(p.chart).Kubeconfig, 0o600))
	for _, which := range []string{"controller", "cainjector"} {
		p.run(fleet.Command{Name: which + " of " + p.chart, Path: made.certManager, Arguments: []string{which, kubeconfig},
			Log: filepath.Join(p.t.TempDir(), "log")})
	}
}

// run starts a program that ends with the test. The end of its log is told if the test failed.
func (p *platform) run(command fleet.Command) *fleet.Process {
	p.t.Helper()
	process, err := fleet.Shared().Run(command)
	expect.NoError(p.t, err)
	p.endWithTest(process, command.Log)
	return process
}

func (p *platform) endWithTest(process *fleet.Process, log string) {
	p.t.Cleanup(func() {
		process.Kill()
		if p.t.Failed() {
			p.t.Logf("the end of the log of %s:\n%s", process.Name(), fleet.Tail(log, 12))
		}
	})
}

// runManager starts the manager as its Deployment's pod, and gives where it serves.
func (p *platform) runManager() (manager *fleet.Process, address string) {
	p.t.Helper()
	address = fmt.Sprintf("127.0.0.1:%d", p.port)
	here := []string{
		"--health-probe-bind-address=0", "--metrics-bind-address=0", "--webhook-bind-address=" + address,
	}
	if p.chart == "trellis-seed" {
		here = append(here, "--query-bind-address=0")
	}
	made, err := programs()
	expect.NoError(p.t, err)
	node := &pod.Node{
		Fleet: fleet.Shared(), Cluster: fleet.Shared().Cluster(p.chart), Client: p.client, Folder: disk.TempDir(p.t),
		Enter: filepath.Join(made.managers, pod.Enter),
	}
	process, err := node.Run(p.t.Context(), pod.Container{
		Name: p.chart, Namespace: namespace, Spec: p.spec, Arguments: here, Log: p.log,
		Program: filepath.Join(made.managers, chartkit.Program(p.chart)),
	})
	expect.NoError(p.t, err)
	p.t.Cleanup(node.Wait) // after its end
	p.endWithTest(process, p.log)
	return process, address
}
