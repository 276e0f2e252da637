package traces

import (
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/disk"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	kit "github.com/trellis-addons/trellis/test/world"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

const (
	platformNamespace  = "kubermatic"
	catalogueNamespace = "addon-catalogue"
	clusterNamespace   = "cluster-traced"
	targetNamespace    = "target"
	patience           = time.Minute
	// planted stands for all that somebody wrote: values, names in a user cluster, parts of URLs.
	planted = "planted-x7"
)

// addon has an object of each sort whose name or content must not be told.
const addon = `apiVersion: v1
kind: Secret
metadata: {name: secret-{{ .Variables.word }}}
stringData: {password: {{ .Variables.word }}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: config-{{ .Variables.word }}}
data: {text: {{ .Variables.word }}}
`

// world is one API server that is master, seed and user cluster.
type world struct {
	fleet   *fleet.Fleet
	both    *fleet.Cluster
	sources *fleet.Sources
	client  client.WithWatch
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{fleet: fleet.ForTest(t, fleet.ClusterOptions{Name: "both"}), sources: fleet.SourcesForTest(t)}
	w.both = w.fleet.Cluster("both")
	w.client = kit.Client(t, w.both.Config)
	for _, name := range []string{platformNamespace, catalogueNamespace, clusterNamespace, targetNamespace} {
		expect.Create(t, w.client, kit.Namespace(name))
	}
	expect.Create(t, w.client, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: catalogueNamespace, Name: "login", Labels: map[string]string{kubermaticv1.LabelUse: kubermaticv1.UseSource},
			Annotations: map[string]string{kubermaticv1.AnnotationHosts: "127.0.0.1"},
		},
		Data: map[string][]byte{"ca.crt": w.sources.CA, "username": []byte(planted), "password": []byte(planted)},
	}, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: clusterNamespace, Name: "internal-admin-kubeconfig"},
		Data:       map[string][]byte{"kubeconfig": w.both.Kubeconfig},
	})
	made := &kkpv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "traced"}}
	expect.Create(t, w.client, made)
	made.Status.Versions.ControlPlane, made.Status.NamespaceName = "v"+binaries.Older, clusterNamespace
	made.Status.ExtendedHealth.APIServer = kkpv1.HealthUp
	expect.UpdateStatus(t, w.client, made)
	return w
}

// offer publishes the add-on, from a repository with a name that must not be told.
func (w *world) offer(t *testing.T) {
	t.Helper()
	if _, err := w.sources.Commit(planted, map[string]string{"addon.yaml": addon}); err != nil {
		t.Fatal(err)
	}
	login := &kubermaticv1.LocalReference{Name: "login"}
	expect.Create(t, w.client, &kubermaticv1.AddonCatalogue{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: catalogueNamespace, Name: "four", Labels: map[string]string{kubermaticv1.LabelRole: kubermaticv1.RoleMerged},
			Annotations: map[string]string{kubermaticv1.AnnotationKKPVersion: "v2.31.0"},
		},
		Spec: kubermaticv1.AddonCatalogueSpec{
			Type: kubermaticv1.CatalogueCustom,
			Addons: []kubermaticv1.Addon{{Name: "four", Versions: []kubermaticv1.AddonVersion{{
				Version: "1.0.0", Template: &kubermaticv1.Template{Method: kubermaticv1.MethodGoTemplate},
				Source: &kubermaticv1.Source{Git: &kubermaticv1.GitSource{
					Remote: kubermaticv1.GitRemote(w.sources.GitURL + "/" + planted + ".git"), CASecretRef: login, SecretRef: login,
				}},
			}}}},
		},
	})
}

// host is that of the sources in git.
func (w *world) host(t *testing.T) string {
	t.Helper()
	at, err := url.Parse(w.sources.GitURL)
	if err != nil {
		t.Fatal(err)
	}
	return at.Host
}

func installation() *kubermaticv1.AddonInstallation {
	return &kubermaticv1.AddonInstallation{
		ObjectMeta: metav1.ObjectMeta{Namespace: clusterNamespace, Name: "four"},
		Spec: kubermaticv1.AddonInstallationSpec{
			AddonRef:        kubermaticv1.AddonReference{Name: "four", Version: "1.0.0"},
			TargetNamespace: targetNamespace, Values: &runtime.RawExtension{Raw: []byte(`{"word":"` + planted + `"}`)},
		},
	}
}

// start builds a manager and starts it.
func (w *world) start(t *testing.T, program string, flags ...string) *fleet.Process {
	t.Helper()
	folder := disk.TempDir(t)
	root, err := binaries.Root()
	if err != nil {
		t.Fatal(err)
	}
	path, kubeconfig := filepath.Join(folder, program), filepath.Join(folder, "kubeconfig")
	if err := binaries.BuildOwn(t.Context(), root, folder, "./cmd/"+program); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(kubeconfig, w.both.Kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	process, err := w.fleet.Run(fleet.Command{Name: program, Path: path, Arguments: append([]string{
		"--kubeconfig", kubeconfig, "--namespace", platformNamespace, "--catalogue-namespace", catalogueNamespace, "--leader-elect=false",
		"--allow-source-cidrs", "127.0.0.0/8", "--store-folder", filepath.Join(folder, "store"), "--health-probe-bind-address", "0",
		"--metrics-bind-address", "0",
	}, flags...)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(process.Kill)
	return process
}
