package helmrelease

import (
	"errors"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/trellis-addons/trellis/pkg/base/listcache"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/test/fleet"
)

// place is the release's namespace, with existing installations.
func (h *helmCluster) place(names ...string) Place {
	h.t.Helper()
	client, err := metadata.NewForConfig(fleet.Shared().Cluster("seed").Config)
	if err != nil {
		h.t.Fatal(err)
	}
	known := map[string]string{}
	for _, name := range names {
		known[ownership.Owner{ClusterUID: "uid", Installation: name}.ID()] = name
	}
	return Place{
		Metadata: client, Secrets: h.secrets, Namespace: h.namespace, NameOf: func(id string) string { return known[id] },
	}
}

// TestFindReportsTheOwner fails if Find ignores revisions of our own label (the copy would begin below them), or does not
// report their owner.
func TestFindReportsTheOwner(t *testing.T) {
	h := newHelmCluster(t, "whose")
	h.write(1, "deployed")
	h.write(2, "deployed")
	for _, test := range []struct {
		why, installation string
		otherInstallation []string
		own               bool
		want              string
	}{
		{"left behind by one of our name", "web", []string{"web"}, true, ""},
		{"another's that exists", "shop", []string{"shop", "web"}, false, "web"},
		{"another's that is gone", "shop", []string{"shop"}, false, ""},
	} {
		owner := ownership.Owner{ClusterUID: "uid", Installation: test.installation}
		found, err := Find(t.Context(), h.place(test.otherInstallation...), "web", owner)
		if err != nil || found == nil {
			t.Fatalf("%s: got %v, %v", test.why, found, err)
		}
		if found.Own != test.own || found.Installation != test.want || found.Revision != 2 {
			t.Errorf("%s: got %+v", test.why, found)
		}
	}
	if found, err := Find(t.Context(), h.place(), "other", ownership.Owner{}); err != nil || found != nil {
		t.Errorf("got %v, %v; want no release", found, err)
	}
}

// TestAdoptStopsAtTheLiving fails if Adopt adopts revisions of an existing installation, or leaves those of a deleted
// one.
func TestAdoptStopsAtTheLiving(t *testing.T) {
	h := newHelmCluster(t, "living")
	h.write(1, "deployed")
	next := h.record(2, "deployed")
	next.Installation = "shop"
	for _, test := range []struct {
		otherInstallation []string
		want              []string
	}{
		{[]string{"web", "shop"}, []string{"1 deployed", "2 deployed"}},
		{[]string{"shop"}, []string{"1 superseded", "2 deployed"}},
	} {
		if err := Adopt(t.Context(), h.place(test.otherInstallation...), next.Helm, next.Owner()); err != nil {
			t.Fatal(err)
		}
		if _, err := Write(t.Context(), h.secrets, next.HelmObject(), false); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, h.history()); diff != "" {
			t.Errorf("with %v (-want +got):\n%s", test.otherInstallation, diff)
		}
	}
}

// TestNamesOfANamespaceComeFromOneList fails if the releases of each name are listed separately, or if one that was
// created after the list counts as absent.
func TestNamesOfANamespaceComeFromOneList(t *testing.T) {
	h := newHelmCluster(t, "names")
	h.write(1, "deployed")
	var calls []string
	place := h.place()
	begun := time.Now()
	stopped := func() time.Time { return begun }
	place.Names = listcache.New(stopped)
	place.Metadata, place.Secrets = h.counted(&calls)
	find := func(name string, found bool, want ...string) {
		t.Helper()
		calls = nil
		got, err := Find(t.Context(), place, name, ownership.Owner{ClusterUID: "uid", Installation: "web"})
		if err != nil || (got != nil) != found {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
		if diff := cmp.Diff(want, calls); diff != "" {
			t.Errorf("%s: calls (-want +got):\n%s", name, diff)
		}
	}
	find("a", false, "LIST", "GET")
	find("b", false, "GET")
	find("web", true, "LIST", "GET")
	made := h.record(1, "deployed")
	made.Helm.Name = "b"
	if _, err := Write(t.Context(), h.secrets, made.HelmObject(), false); err != nil {
		t.Fatal(err)
	}
	find("b", true, "GET", "LIST", "GET")
	place.Names = listcache.New(stopped)
	var gone *url.Error
	place.Metadata = h.unreachable()
	if _, err := Find(t.Context(), place, "a", ownership.Owner{}); !errors.As(err, &gone) {
		t.Errorf("got %v of a cluster that can't be reached", err)
	}
}

func (h *helmCluster) unreachable() metadata.Interface {
	h.t.Helper()
	client, err := metadata.NewForConfig(&rest.Config{Host: "https://127.0.0.1:1"})
	if err != nil {
		h.t.Fatal(err)
	}
	return client
}

// counted are clients whose calls are recorded by their action.
func (h *helmCluster) counted(calls *[]string) (metadata.Interface, corev1client.SecretInterface) {
	h.t.Helper()
	config := rest.CopyConfig(fleet.Shared().Cluster("seed").Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(request *http.Request) (*http.Response, error) {
			method := request.Method
			if request.URL.Query().Has("labelSelector") {
				method = "LIST"
			}
			*calls = append(*calls, method)
			return next.RoundTrip(request)
		})
	})
	lister, err := metadata.NewForConfig(config)
	if err != nil {
		h.t.Fatal(err)
	}
	core, err := corev1client.NewForConfig(config)
	if err != nil {
		h.t.Fatal(err)
	}
	return lister, core.Secrets(h.namespace)
}

type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (r roundTrip) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// TestNewRevisionsMeetWhatIsThere fails if a presumably new revision is looked up first, if it is written over an
// existing one, or if an equal one is written again.
func TestNewRevisionsMeetWhatIsThere(t *testing.T) {
	h := newHelmCluster(t, "meets")
	var calls []string
	_, secrets := h.counted(&calls)
	write := func(record *record, want ...string) error {
		t.Helper()
		calls = nil
		_, err := Write(t.Context(), secrets, record.HelmObject(), true)
		if diff := cmp.Diff(want, calls); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
		return err
	}
	if err := write(h.record(1, "deployed"), "POST"); err != nil {
		t.Error(err)
	}
	if err := write(h.record(1, "deployed"), "POST", "GET"); err != nil {
		t.Error(err)
	}
	foreign := h.record(1, "deployed")
	foreign.Installation = "shop"
	var taken *NameTakenError
	if err := write(foreign, "POST", "GET"); !errors.As(err, &taken) {
		t.Errorf("got %v, want a refusal", err)
	}
}
