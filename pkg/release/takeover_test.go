package release

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/trellis-addons/trellis/pkg/apply"
	"github.com/trellis-addons/trellis/test/fleet"
)

// place is where the release is, with installations that exist.
func (h *helmCluster) place(names ...string) HelmPlace {
	h.t.Helper()
	client, err := metadata.NewForConfig(fleet.Shared().Cluster("seed").Config)
	if err != nil {
		h.t.Fatal(err)
	}
	known := map[string]string{}
	for _, name := range names {
		known[apply.Owner{ClusterUID: "uid", Installation: name}.ID()] = name
	}
	return HelmPlace{
		Metadata: client, Secrets: h.secrets, Namespace: h.namespace, NameOf: func(id string) string { return known[id] },
	}
}

// Red when FindHelm passes over revisions of our own label (the copy would begin below them), or does not tell whose they are.
func TestFindHelmTellsWhose(t *testing.T) {
	h := newHelmCluster(t, "whose")
	h.write(1, "deployed")
	h.write(2, "deployed")
	for _, test := range []struct {
		why, installation string
		living            []string
		own               bool
		want              string
	}{
		{"left behind by one of our name", "web", []string{"web"}, true, ""},
		{"another's that exists", "shop", []string{"shop", "web"}, false, "web"},
		{"another's that is gone", "shop", []string{"shop"}, false, ""},
	} {
		owner := apply.Owner{ClusterUID: "uid", Installation: test.installation}
		found, err := FindHelm(t.Context(), h.place(test.living...), "web", owner)
		if err != nil || found == nil {
			t.Fatalf("%s: got %v, %v", test.why, found, err)
		}
		if found.Own != test.own || found.Installation != test.want || found.Revision != 2 {
			t.Errorf("%s: got %+v", test.why, found)
		}
	}
	if found, err := FindHelm(t.Context(), h.place(), "other", apply.Owner{}); err != nil || found != nil {
		t.Errorf("got %v, %v; want no release", found, err)
	}
}

// Red when TakeOverHelm takes what an installation has that exists, or leaves what one left behind that is gone.
func TestTakeOverHelmStopsAtTheLiving(t *testing.T) {
	h := newHelmCluster(t, "living")
	h.write(1, "deployed")
	next := h.record(2, "deployed")
	next.Installation = "shop"
	for _, test := range []struct {
		living []string
		want   []string
	}{
		{[]string{"web", "shop"}, []string{"1 deployed", "2 deployed"}},
		{[]string{"shop"}, []string{"1 superseded", "2 deployed"}},
	} {
		if err := TakeOverHelm(t.Context(), h.place(test.living...), next.Helm, next.Owner()); err != nil {
			t.Fatal(err)
		}
		if _, err := WriteHelm(t.Context(), h.place(), next.HelmObject(), false); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, h.history()); diff != "" {
			t.Errorf("with %v (-want +got):\n%s", test.living, diff)
		}
	}
}

// Red when each name is asked for, when a release that was written since counts as absent, or when a new revision is looked for
// before it is written.
func TestNamesOfANamespaceComeFromOneList(t *testing.T) {
	h := newHelmCluster(t, "names")
	h.write(1, "deployed")
	var calls []string
	place := h.place()
	place.Names = NewHelmNames(time.Now)
	place.Metadata, place.Secrets = h.counted(&calls)
	owner := apply.Owner{ClusterUID: "uid", Installation: "web"}
	find := func(name string) *ForeignHelm {
		t.Helper()
		found, err := FindHelm(t.Context(), place, name, owner)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	for _, name := range []string{"a", "b", "c"} {
		if found := find(name); found != nil {
			t.Errorf("found %v", found)
		}
	}
	if len(calls) != 1 {
		t.Errorf("calls for three names: %q", calls)
	}
	if found := find("web"); found == nil || found.Revision != 1 {
		t.Errorf("got %v of a release on the list", found)
	}
	fresh := h.record(1, "deployed")
	fresh.Helm.Name = "a"
	calls = nil
	if _, err := WriteHelm(t.Context(), place, fresh.HelmObject(), true); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"POST"}, calls); diff != "" {
		t.Errorf("calls for a new release (-want +got):\n%s", diff)
	}
	if found := find("a"); found == nil || !found.Own {
		t.Errorf("got %v of a release that was written after the list", found)
	}
}

// counted are clients whose calls are noted by their methods.
func (h *helmCluster) counted(calls *[]string) (metadata.Interface, corev1client.SecretInterface) {
	h.t.Helper()
	config := rest.CopyConfig(fleet.Shared().Cluster("seed").Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(request *http.Request) (*http.Response, error) {
			*calls = append(*calls, request.Method)
			return next.RoundTrip(request)
		})
	})
	meta, err := metadata.NewForConfig(config)
	if err != nil {
		h.t.Fatal(err)
	}
	core, err := corev1client.NewForConfig(config)
	if err != nil {
		h.t.Fatal(err)
	}
	return meta, core.Secrets(h.namespace)
}

type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (r roundTrip) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// Red when a revision that is taken to be new is written over what is there, or an equal one is written again.
func TestNewRevisionsMeetWhatIsThere(t *testing.T) {
	h := newHelmCluster(t, "meets")
	h.write(1, "deployed")
	var calls []string
	place := h.place()
	_, place.Secrets = h.counted(&calls)
	if _, err := WriteHelm(t.Context(), place, h.record(1, "deployed").HelmObject(), true); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"POST", "GET"}, calls); diff != "" {
		t.Errorf("calls for an equal one (-want +got):\n%s", diff)
	}
	foreign := h.record(1, "deployed")
	foreign.Installation = "shop"
	var taken *HelmNameTakenError
	if _, err := WriteHelm(t.Context(), place, foreign.HelmObject(), true); !errors.As(err, &taken) {
		t.Errorf("got %v, want a refusal", err)
	}
}
