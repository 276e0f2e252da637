package helmrelease

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	helm "helm.sh/helm/v3/pkg/release"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/long"
)

// record is the part of an installation's record about a release.
type record struct {
	Installation string
	Helm         *Release
}

func (r *record) Owner() ownership.Owner {
	return ownership.Owner{ClusterUID: "uid", Installation: r.Installation}
}

func (r *record) HelmObject() *helm.Release { return r.Helm.Object(r.Owner(), nil) }

// helmCluster is a namespace of a real API server, which the real helm program uses too.
type helmCluster struct {
	t         *testing.T
	namespace string
	secrets   corev1client.SecretInterface
	client    client.Client
	program   string
	file      string
}

func newHelmCluster(t *testing.T, namespace string) *helmCluster {
	t.Helper()
	h := &helmCluster{t: t, namespace: namespace, file: filepath.Join(t.TempDir(), "kubeconfig")}
	h.client = fleet.InNamespace(t, "seed", namespace)
	cache, err := binaries.Cache()
	expect.NoError(t, err)
	if h.program, err = binaries.Find(cache, "helm", ""); err != nil {
		t.Fatal(err)
	}
	expect.NoError(t, os.WriteFile(h.file, fleet.Shared().Cluster("seed").Kubeconfig, 0o600))
	core, err := corev1client.NewForConfig(fleet.Shared().Cluster("seed").Config)
	expect.NoError(t, err)
	h.secrets = core.Secrets(namespace)
	return h
}

func (h *helmCluster) helm(arguments ...string) string {
	h.t.Helper()
	command := exec.CommandContext(h.t.Context(), h.program, append(arguments, "--namespace", h.namespace, "--kubeconfig", h.file)...)
	command.Env = append(os.Environ(), "HOME="+filepath.Dir(h.file), "HELM_DRIVER=secrets")
	output, err := command.CombinedOutput()
	if err != nil {
		h.t.Fatalf("helm %q: %v\n%s", arguments, err, output)
	}
	return string(output)
}

func (h *helmCluster) write(revision int, status string) *record {
	h.t.Helper()
	record := h.record(revision, status)
	if _, err := Write(h.t.Context(), h.secrets, record.HelmObject(), false); err != nil {
		h.t.Fatal(err)
	}
	return record
}

func (h *helmCluster) record(revision int, status string) *record {
	return &record{Installation: "web", Helm: &Release{
		Name: "web", Namespace: h.namespace, Revision: revision, Status: status,
		ChartName: "nginx", ChartVersion: fmt.Sprintf("1.%d.0", revision), AppVersion: "2.0",
		Manifest:      "---\n# Source: nginx/templates/cm.yaml\nkind: ConfigMap\n",
		Config:        map[string]any{"replicas": 3, "kkp": map[string]any{"token": "canary"}},
		FirstDeployed: metav1.NewTime(time.Unix(1800000000, 0)), LastDeployed: metav1.NewTime(time.Unix(1800000060, 0)),
		Description: "Install complete",
	}}
}

// history is "revision status" of every revision, as the program shows it.
func (h *helmCluster) history() []string {
	h.t.Helper()
	var rows []struct {
		Revision int    `json:"revision"`
		Status   string `json:"status"`
	}
	expect.NoError(h.t, json.Unmarshal([]byte(h.helm("history", "web", "--max", "100", "-o", "json")), &rows))
	var lines []string
	for _, row := range rows {
		lines = append(lines, fmt.Sprintf("%d %s", row.Revision, row.Status))
	}
	return lines
}

func TestHelmShowsTheRelease(t *testing.T) {
	h := newHelmCluster(t, "shown")
	h.write(1, "deployed")
	var listed []map[string]string
	expect.NoError(t, json.Unmarshal([]byte(h.helm("list", "-o", "json")), &listed))
	for _, row := range listed {
		delete(row, "updated")
	}
	want := []map[string]string{{
		"name": "web", "namespace": "shown", "revision": "1", "status": "deployed", "chart": "nginx-1.1.0", "app_version": "2.0",
	}}
	if diff := cmp.Diff(want, listed); diff != "" {
		t.Errorf("helm list (-want +got):\n%s", diff)
	}
	for _, test := range []struct{ what, want string }{
		{"manifest", "kind: ConfigMap"},
		{"values", "replicas: 3"},
		{"metadata", "CHART: nginx"},
		{"all", "nginx"},
	} {
		if got := h.helm("get", test.what, "web"); !strings.Contains(got, test.want) || strings.Contains(got, "canary") {
			t.Errorf("helm get %s has no %q, or shows what it must not:\n%s", test.what, test.want, got)
		}
	}
	if got := h.helm("status", "web"); !strings.Contains(got, "STATUS: deployed") {
		t.Errorf("helm status:\n%s", got)
	}
}

func TestHelmHistory(t *testing.T) {
	h := newHelmCluster(t, "history")
	h.write(1, "pending-install")
	if diff := cmp.Diff([]string{"1 pending-install"}, h.history()); diff != "" {
		t.Errorf("before (-want +got):\n%s", diff)
	}
	h.write(1, "deployed")
	h.write(2, "pending-upgrade")
	if diff := cmp.Diff([]string{"1 deployed", "2 pending-upgrade"}, h.history()); diff != "" {
		t.Errorf("during an upgrade (-want +got):\n%s", diff)
	}
	h.write(2, "failed")
	h.write(3, "deployed")
	if diff := cmp.Diff([]string{"1 superseded", "2 failed", "3 deployed"}, h.history()); diff != "" {
		t.Errorf("after (-want +got):\n%s", diff)
	}
	var want []string
	for revision := 4; revision <= 14; revision++ {
		h.write(revision, "deployed")
		want = append(want, fmt.Sprintf("%d superseded", revision))
	}
	want = append(want[1:10], "14 deployed")
	if diff := cmp.Diff(want, h.history()); diff != "" {
		t.Errorf("ten are kept (-want +got):\n%s", diff)
	}
}

func TestEqualReleasesAreLeftAlone(t *testing.T) {
	h := newHelmCluster(t, "equal")
	h.write(1, "deployed")
	h.write(2, "deployed")
	versions := func() map[string]string {
		list, err := h.secrets.List(t.Context(), metav1.ListOptions{})
		expect.NoError(t, err)
		found := map[string]string{}
		for _, item := range list.Items {
			found[item.Name] = item.ResourceVersion
		}
		return found
	}
	before := versions()
	h.write(2, "deployed")
	if diff := cmp.Diff(before, versions()); diff != "" {
		t.Errorf("written although equal (-before +after):\n%s", diff)
	}

	spoilt := &corev1.Secret{}
	key := client.ObjectKey{Namespace: h.namespace, Name: "sh.helm.release.v1.web.v2"}
	expect.Get(t, h.client, key, spoilt)
	spoilt.Data["release"] = []byte("spoilt")
	expect.Update(t, h.client, spoilt)
	h.write(2, "deployed")
	if diff := cmp.Diff([]string{"1 superseded", "2 deployed"}, h.history()); diff != "" {
		t.Errorf("put back (-want +got):\n%s", diff)
	}
}

func TestSomebodyElsesRelease(t *testing.T) {
	h := newHelmCluster(t, "foreign")
	foreign := h.record(1, "deployed")
	foreign.Installation = "somebody-elses"
	if _, err := Write(t.Context(), h.secrets, foreign.HelmObject(), false); err != nil {
		t.Fatal(err)
	}
	_, err := Write(t.Context(), h.secrets, h.record(1, "deployed").HelmObject(), false)
	if _, ok := errors.AsType[*NameTakenError](err); !ok {
		t.Errorf("got %v, want a NameTakenError", err)
	}
	h.write(2, "deployed")
	expect.NoError(t, Remove(t.Context(), h.secrets, "web", ownership.Owner{ClusterUID: "uid", Installation: "web"}))
	if diff := cmp.Diff([]string{"1 deployed"}, h.history()); diff != "" {
		t.Errorf("what is left (-want +got):\n%s", diff)
	}
}

func TestRemoveLeavesNothingAndNothingElse(t *testing.T) {
	h := newHelmCluster(t, "removed")
	other := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: h.namespace, Name: "password", Labels: h.record(1, "").HelmObject().Labels,
	}}
	expect.Create(t, h.client, other)
	record := h.write(1, "deployed")
	h.write(2, "uninstalling")
	expect.NoError(t, Remove(t.Context(), h.secrets, "web", record.Owner()))
	list, err := h.secrets.List(t.Context(), metav1.ListOptions{})
	expect.NoError(t, err)
	if len(list.Items) != 1 || list.Items[0].Name != "password" {
		t.Errorf("got %d Secrets, want the password alone", len(list.Items))
	}
	if err := Remove(t.Context(), h.secrets, "web", record.Owner()); err != nil {
		t.Errorf("removing again: %v", err)
	}
}

func TestNameFor(t *testing.T) {
	long := strings.Repeat("a", 54)
	for _, test := range []struct{ why, installation, want string }{
		{"short names stay", "prometheus", "prometheus"},
		{"53 is Helm's limit", long[:53], long[:53]},
		{"longer ones are cut and told apart", long, long[:44] + "-a3f01b69"},
		{"a cut after a dot would be no name", long[:43] + "." + long[:10], long[:43] + "-b31d6fdd"},
	} {
		if diff := cmp.Diff(test.want, NameFor(test.installation)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.why, diff)
		}
	}
}

func TestSameChart(t *testing.T) {
	chart := func(version string) *Release {
		return &Release{Name: "web", ChartName: "web", ChartVersion: version}
	}
	for _, test := range []struct {
		why  string
		a, b *Release
		want bool
	}{
		{"both without a chart", nil, nil, true},
		{"another method", nil, chart("1.0.0"), false},
		{"equal", chart("1.0.0"), chart("1.0.0"), true},
		{"another version is told by helm list", chart("1.0.0"), chart("1.0.1"), false},
	} {
		t.Run(test.why, func(t *testing.T) {
			if got := test.a.IsSameChart(test.b); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestDecodeHelmHasABound(t *testing.T) {
	long.Heavy(t)
	var bomb bytes.Buffer
	encoder := base64.NewEncoder(base64.StdEncoding, &bomb)
	packer := gzip.NewWriter(encoder)
	if _, err := packer.Write([]byte(`{"chart":"`)); err != nil {
		t.Fatal(err)
	}
	block := bytes.Repeat([]byte("x"), 1<<20)
	for range unpackedLimit>>20 + 1 {
		if _, err := packer.Write(block); err != nil {
			t.Fatal(err)
		}
	}
	expect.NoError(t, errors.Join(packer.Close(), encoder.Close()))
	var large *tooLargeError
	if _, err := decode(t.Context(), bomb.Bytes()); !errors.As(err, &large) {
		t.Errorf("got %v, want a tooLargeError", err)
	}
}

func FuzzDecodeHelm(f *testing.F) {
	f.Add([]byte("H4sIAAAAAAAA/6pWSk5NLVayUlAqyS8pVtJRUEpJLElUslKqBQQAAP//"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if rel, err := decode(t.Context(), data); (rel == nil) == (err == nil) {
			t.Fatalf("got %v and %v", rel, err)
		}
	})
}
