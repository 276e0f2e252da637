package addoninstallation

import (
	"encoding/hex"
	"math/rand/v2"
	"strings"
	"testing"

	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/events"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/apply"
	"github.com/trellis-addons/trellis/pkg/cluster"
	"github.com/trellis-addons/trellis/pkg/release"
	"github.com/trellis-addons/trellis/test/fleet"
)

// Red when a copy that no Secret holds is tried at every look, with an event each, or when the next revision is not tried.
func TestACopyThatIsTooLargeIsTriedOnce(t *testing.T) {
	secrets, err := corev1client.NewForConfig(fleet.Shared().Cluster("both").Config)
	if err != nil {
		t.Fatal(err)
	}
	noise := make([]byte, 2<<20)
	source := rand.New(rand.NewPCG(1, 2))
	for i := range noise {
		noise[i] = byte(source.Uint32())
	}
	record := &release.Record{
		Revision: 1, Installation: "large", ClusterUID: "uid",
		Helm: &release.HelmRelease{Name: "large", Namespace: "default", Status: "deployed", Manifest: hex.EncodeToString(noise)},
	}
	recorder := events.NewFakeRecorder(10)
	r := New(Dependencies{Recorder: recorder})
	f := &facts{
		installation: &kubermaticv1.AddonInstallation{}, memory: &memory{record: record}, saved: record,
		connection: &cluster.Connection{Secrets: secrets}, owner: apply.Owner{ClusterUID: "uid", Installation: "large"},
	}
	for revision := 1; revision <= 2; revision++ {
		record.Helm.Revision = revision
		for range 3 {
			r.copyHelm(t.Context(), f)
		}
		if told := len(recorder.Events); told != 1 {
			t.Fatalf("revision %d: %d events, want one", revision, told)
		}
		if text := <-recorder.Events; !strings.Contains(text, "helm does not show this revision") || !strings.Contains(text, "1 MiB") {
			t.Errorf("revision %d: it says %q", revision, text)
		}
	}
	record.Helm.Revision, record.Helm.Manifest = 3, "small"
	r.copyHelm(t.Context(), f)
	if len(recorder.Events) > 0 || f.memory.helmWritten == "" {
		t.Error("a revision that fits is not shown")
	}
}
