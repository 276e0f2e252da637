package installer

import (
	"context"
	"encoding/hex"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	memorycache "k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/install/helmrelease"
	"github.com/trellis-addons/trellis/pkg/install/revision"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/long"
)

// TestACopyThatIsTooLargeIsTriedOnce fails if a copy that is too large for a Secret is tried in every reconciliation,
// with an event each; if the next revision is not tried, or another release of the same revision; and if the previous
// release stays until such a copy exists.
func TestACopyThatIsTooLargeIsTriedOnce(t *testing.T) {
	long.Heavy(t)
	secrets, err := corev1client.NewForConfig(fleet.Shared().Cluster("both").Config)
	if err != nil {
		t.Fatal(err)
	}
	noise := make([]byte, 2<<20)
	source := rand.New(rand.NewPCG(1, 2))
	for i := range noise {
		noise[i] = byte(source.Uint32())
	}
	record := &revision.Record{
		Revision: 1, Installation: "large", ClusterUID: "uid",
		Helm: &helmrelease.Release{Name: "large", Namespace: "default", Status: "deployed", Manifest: hex.EncodeToString(noise)},
	}
	var reported []Event
	p := (&Installer{}).NewRun(&State{Record: record}, "cluster-a", Asked{}, Seed{Notify: func(event Event) { reported = append(reported, event) }})
	p.saved, p.Connection, p.Owner = record, &cluster.Connection{Secrets: secrets}, ownership.Owner{ClusterUID: "uid", Installation: "large"}
	p.Cluster = target.Ref{UID: "uid"}
	for revision := 1; revision <= 2; revision++ {
		record.Helm.Revision = revision
		for range 3 {
			p.copyHelm(t.Context())
		}
		if p.awaitsCopy() {
			t.Errorf("revision %d: the former release waits for what never comes", revision)
		}
		if len(reported) != 1 {
			t.Fatalf("revision %d: %d events, want one", revision, len(reported))
		}
		text := reported[0].Message
		if reported = nil; !strings.Contains(text, "helm does not show this revision") || !strings.Contains(text, "1024") {
			t.Errorf("revision %d: it says %q", revision, text)
		}
	}
	record.Helm.Name, record.Helm.Manifest = "small", "small"
	if !p.awaitsCopy() {
		t.Error("another release is not waited for")
	}
	p.copyHelm(t.Context())
	if len(reported) > 0 || p.State.helmWritten == "" {
		t.Error("a release that fits is not shown")
	}
}

// TestACopyIsLookedAtByItsVersion fails if the copy of an unchanged release is read separately, if a manual change
// stays, or if it counts as unchanged without a check.
func TestACopyIsLookedAtByItsVersion(t *testing.T) {
	var calls []string
	config := rest.CopyConfig(fleet.Shared().Cluster("both").Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return transport(func(request *http.Request) (*http.Response, error) {
			if strings.Contains(request.URL.Path, "/secrets") {
				calls = append(calls, request.Method+" "+request.URL.Path)
			}
			return next.RoundTrip(request)
		})
	})
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	lister, err := metadata.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	record := &revision.Record{
		Revision: 1, Installation: "resting", ClusterUID: "uid",
		Helm: &helmrelease.Release{Name: "resting", Namespace: "default", Revision: 1, Status: "deployed", Manifest: "kind: Service"},
	}
	secrets := clients.CoreV1().Secrets("default")
	name := record.Helm.Secret()
	t.Cleanup(func() { _ = secrets.Delete(context.Background(), name, metav1.DeleteOptions{}) })
	i := &Installer{Interval: time.Hour}
	p := i.NewRun(&State{Record: record}, "cluster-a", Asked{}, Seed{Notify: func(Event) {}})
	p.saved, p.Cluster, p.Owner = record, target.Ref{UID: "uid"}, ownership.Owner{ClusterUID: "uid", Installation: "resting"}
	p.Connection = &cluster.Connection{
		Secrets: clients.CoreV1(), Metadata: lister,
		Mapper: restmapper.NewDeferredDiscoveryRESTMapper(memorycache.NewMemCacheClient(clients.Discovery())),
	}
	look := func(want ...string) {
		t.Helper()
		calls = nil
		if p.copyHelm(t.Context()); !slices.Equal(calls, want) {
			t.Errorf("calls %q, want %q", calls, want)
		}
	}
	one := "/api/v1/namespaces/default/secrets/" + name
	look("POST /api/v1/namespaces/default/secrets")
	look("GET /api/v1/secrets")
	look()
	patch := []byte(`{"stringData": {"release": "by hand"}}`)
	if _, err := secrets.Patch(t.Context(), name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	p.view().newSurvey(time.Hour)
	look("GET /api/v1/secrets", "GET "+one, "PUT "+one)
	stored, err := secrets.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil || string(stored.Data["release"]) == "by hand" {
		t.Errorf("what was changed by hand stays: %v", err)
	}
}

// transport is a function as a RoundTripper.
type transport func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (t transport) RoundTrip(request *http.Request) (*http.Response, error) { return t(request) }
