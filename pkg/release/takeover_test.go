package release

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/metadata"

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
		if _, err := WriteHelm(t.Context(), h.secrets, next.HelmObject()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, h.history()); diff != "" {
			t.Errorf("with %v (-want +got):\n%s", test.living, diff)
		}
	}
}
