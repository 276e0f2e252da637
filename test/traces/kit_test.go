package traces

import (
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/disk"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/given"
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
	for _, name := range []string{platformNamespace, catalogueNamespace, targetNamespace} {
		expect.Create(t, w.client, kit.Namespace(name))
	}
	expect.Create(t, w.client, given.SourceSecret(
		catalogueNamespace, "login", map[string][]byte{"ca.crt": w.sources.CA, "username": []byte(planted), "password": []byte(planted)},
	))
	kit.UserCluster(t, w.client, "traced", w.both.Kubeconfig)
	return w
}

// offer publishes the add-on, from a repository with a name that must not be told.
func (w *world) offer(t *testing.T) {
	t.Helper()
	if _, err := w.sources.Commit(planted, map[string]string{"addon.yaml": addon}); err != nil {
		t.Fatal(err)
	}
	source, login := given.Git(w.sources.GitURL+"/"+planted+".git", ""), &kubermaticv1.LocalReference{Name: "login"}
	source.Git.CASecretRef, source.Git.SecretRef = login, login
	offered := given.Addon("four", given.Version("1.0.0", source))
	expect.Create(t, w.client, given.Merged(catalogueNamespace, kubermaticv1.CatalogueCustom, offered))
}

// host is that of the sources in git.
func (w *world) host(t *testing.T) string {
	t.Helper()
	at, err := url.Parse(w.sources.GitURL)
	expect.NoError(t, err)
	return at.Host
}

func installation() *kubermaticv1.AddonInstallation {
	return given.Installation(
		clusterNamespace, "four", "four", targetNamespace, given.In("1.0.0"), given.Values(`{"word":"`+planted+`"}`),
	)
}

// start builds a manager and starts it.
func (w *world) start(t *testing.T, program string, flags ...string) *fleet.Process {
	t.Helper()
	folder := disk.TempDir(t)
	root, err := binaries.Root()
	expect.NoError(t, err)
	path, kubeconfig := filepath.Join(folder, program), filepath.Join(folder, "kubeconfig")
	expect.NoError(t, binaries.BuildOwn(t.Context(), root, folder, "./cmd/"+program))
	expect.NoError(t, os.WriteFile(kubeconfig, w.both.Kubeconfig, 0o600))
	process, err := w.fleet.Run(fleet.Command{Name: program, Path: path, Arguments: append([]string{
		"--kubeconfig", kubeconfig, "--namespace", platformNamespace, "--catalogue-namespace", catalogueNamespace, "--leader-elect=false",
		"--allow-source-cidrs", "127.0.0.0/8", "--store-folder", filepath.Join(folder, "store"), "--health-probe-bind-address", "0",
		"--metrics-bind-address", "0",
	}, flags...)})
	expect.NoError(t, err)
	t.Cleanup(process.Kill)
	return process
}
