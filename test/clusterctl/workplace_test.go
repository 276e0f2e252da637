package clusterctl

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/trellis-addons/trellis/hack/release/components"
	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/fleet"
)

// workplace is where somebody types commands: programs by their name, a home, and a cluster.
type workplace struct {
	t          *testing.T
	home       string
	kubeconfig string
}

func newWorkplace(t *testing.T, cluster string) workplace {
	t.Helper()
	w := workplace{t: t, home: t.TempDir()}
	w.kubeconfig = filepath.Join(w.home, "kubeconfig")
	write(t, w.kubeconfig, string(fleet.Shared().Cluster(cluster).Kubeconfig))
	return w
}

// run runs one of the programs that are built from source. A call to any host but this machine fails at once.
func (w workplace) run(name string, arguments ...string) string {
	w.t.Helper()
	command := exec.CommandContext(w.t.Context(), built(w.t, name), arguments...)
	command.Dir = w.home
	command.Env = []string{
		"HOME=" + w.home, "XDG_CONFIG_HOME=" + w.home, "KUBECONFIG=" + w.kubeconfig,
		"HTTPS_PROXY=http://127.0.0.1:1", "HTTP_PROXY=http://127.0.0.1:1", "GOPROXY=off", "CLUSTERCTL_DISABLE_VERSIONCHECK=true",
	}
	var output, complaints bytes.Buffer
	command.Stdout, command.Stderr = &output, &complaints
	if err := command.Run(); err != nil {
		w.t.Fatalf("%s %v: %v\n%s%s", name, arguments, err, output.String(), complaints.String())
	}
	return output.String()
}

// built is the path of a program.
func built(t *testing.T, name string) string {
	t.Helper()
	cache, err := binaries.Cache()
	if err != nil {
		t.Fatal(err)
	}
	path, err := binaries.Find(cache, name, "")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// configure tells clusterctl of the providers in a folder, ours and Cluster API, and that somebody else keeps cert-manager.
func (w workplace) configure(folder string) {
	w.t.Helper()
	write(w.t, filepath.Join(w.home, "cluster-api", "clusterctl.yaml"), fmt.Sprintf(`providers:
- name: trellis
  type: AddonProvider
  url: %[1]s/%[2]s/v%[3]s/addon-components.yaml
- name: cluster-api
  type: CoreProvider
  url: %[1]s/cluster-api/v%[4]s/core-components.yaml
cert-manager:
  externallyProvisioned: "true"
`, folder, provider, version, clusterAPI(w.t)))
}

// clusterAPI is the version of Cluster API that clusterctl and the kinds are of.
func clusterAPI(t *testing.T) string {
	t.Helper()
	for _, program := range binaries.Programs() {
		if program.Name == "cluster-api" {
			return program.Release
		}
	}
	t.Fatal("no Cluster API among the programs")
	return ""
}

// putClusterAPI puts a provider with Cluster API's own kinds into the folder, and nothing that runs.
func putClusterAPI(t *testing.T, folder string) {
	t.Helper()
	crds, err := components.Joined(filepath.Join(filepath.Dir(built(t, "cluster-api")), "crds"))
	if err != nil {
		t.Fatal(err)
	}
	version := clusterAPI(t)
	at := filepath.Join(folder, "cluster-api", "v"+version)
	write(t, filepath.Join(at, "core-components.yaml"), "apiVersion: v1\nkind: Namespace\nmetadata: {name: capi-system}\n"+crds)
	numbers := strings.Split(version, ".")
	write(t, filepath.Join(at, "metadata.yaml"), "apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\nkind: Metadata\n"+
		"releaseSeries:\n- {major: "+numbers[0]+", minor: "+numbers[1]+", contract: v1beta2}\n")
}

// putCertManager installs the kinds of which clusterctl makes one object each, and takes them off again, to see that they are served.
func putCertManager(t *testing.T) {
	t.Helper()
	var crds []*apiextensionsv1.CustomResourceDefinition
	for plural, kind := range map[string]string{"issuers": "Issuer", "certificates": "Certificate"} {
		crds = append(crds, &apiextensionsv1.CustomResourceDefinition{
			ObjectMeta: metav1.ObjectMeta{Name: plural + ".cert-manager.io"},
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{
				Group: "cert-manager.io", Scope: apiextensionsv1.NamespaceScoped,
				Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: kind, ListKind: kind + "List"},
				Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
					Name: "v1", Served: true, Storage: true,
					Schema: &apiextensionsv1.CustomResourceValidation{
						OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)},
					},
				}},
			},
		})
	}
	if err := fleet.InstallDefinitions(t.Context(), fleet.Shared().Cluster(management).Config, crds...); err != nil {
		t.Fatal(err)
	}
}

// probe is the namespace of these objects. clusterctl deletes it at its end, and wants another one the next time.
const probe = "cert-manager-test"

// endProbe does what a controller-manager would: there is none, so that nothing but what is installed is on the API server.
func endProbe(t *testing.T) {
	t.Helper()
	namespaces := kubernetes.NewForConfigOrDie(fleet.Shared().Cluster(management).Config).CoreV1().Namespaces()
	left, err := namespaces.Get(t.Context(), probe, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	left.Spec.Finalizers = nil
	if _, err := namespaces.Finalize(t.Context(), left, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}
