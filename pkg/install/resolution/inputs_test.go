package resolution_test

import (
	"testing"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/install/resolution"
	"github.com/trellis-addons/trellis/pkg/values"
	"github.com/trellis-addons/trellis/pkg/values/images"
)

// TestInputsCountImagesAndData fails when an installation is not rendered again for other mirrors, another pull
// secret or another fact of the cluster.
func TestInputsCountImagesAndData(t *testing.T) {
	inputs := func(mirror, pullSecret, domain string) string {
		mirrors, err := images.ParseMirrors([]string{"docker.io=" + mirror})
		if err != nil {
			t.Fatal(err)
		}
		made := resolution.Inputs{
			Installation: &v1.AddonInstallation{}, Images: images.Rules{Mirrors: mirrors, PullSecret: pullSecret}.Canonical(),
			Choice: resolution.Choice{Version: &v1.AddonVersion{Template: &v1.Template{Method: v1.MethodGoTemplate}}},
		}
		made.Data.Cluster.Network.DNSDomain = domain
		hash, err := made.Hash([]byte("key"))
		if err != nil {
			t.Fatal(err)
		}
		return hash
	}
	base := inputs("a.example.com", "", "cluster.local")
	if again := inputs("a.example.com", "", "cluster.local"); again != base {
		t.Error("equal inputs have different hashes")
	}
	for why, other := range map[string]string{
		"another mirror": inputs("b.example.com", "", "cluster.local"), "a pull secret": inputs("a.example.com", "mirror", "cluster.local"),
		"another domain": inputs("a.example.com", "", "other.local"),
	} {
		if other == base {
			t.Errorf("%s: the hash is the same", why)
		}
	}
}

// TestWantedIsWhatPeopleSay fails when changes of users are not distinguished from changes of the cluster.
func TestWantedIsWhatPeopleSay(t *testing.T) {
	wanted := func(change func(made *resolution.Inputs, layers []values.Layer)) string {
		layers := []values.Layer{
			{Origin: "valuesTemplate", Values: map[string]any{"a": "b"}}, {Origin: "installation", Values: map[string]any{"c": "d"}},
			{Origin: "installation valuesTemplate", Values: map[string]any{"e": "f"}},
		}
		made := resolution.Inputs{
			Installation: &v1.AddonInstallation{}, Values: resolution.Values{Layers: layers}, Images: images.Rules{}.Canonical(),
			Choice: resolution.Choice{
				Origin:  catalogue.Origin{Digest: "entry"},
				Version: &v1.AddonVersion{Template: &v1.Template{Method: v1.MethodHelm}},
			},
		}
		change(&made, layers)
		hash, err := made.Wanted([]byte("key"))
		if err != nil {
			t.Fatal(err)
		}
		return hash
	}
	base := wanted(func(*resolution.Inputs, []values.Layer) {})
	for why, test := range map[string]struct {
		change func(made *resolution.Inputs, layers []values.Layer)
		same   bool
	}{
		"another version of Kubernetes": {func(i *resolution.Inputs, _ []values.Layer) { i.KubernetesVersion = "v1.37.0" }, true},
		"other data":                    {func(i *resolution.Inputs, _ []values.Layer) { i.Data.Cluster.Network.DNSDomain = "x" }, true},
		"values made of the data":       {func(_ *resolution.Inputs, layers []values.Layer) { layers[0].Values = nil }, true},
		"own values made of the data":   {func(_ *resolution.Inputs, layers []values.Layer) { layers[2].Values = nil }, true},
		"another valuesTemplate":        {func(i *resolution.Inputs, _ []values.Layer) { i.Installation.Spec.ValuesTemplate = "x" }, false},
		"another release name":          {func(i *resolution.Inputs, _ []values.Layer) { i.Installation.Spec.ReleaseName = "x" }, false},
		"another value":                 {func(_ *resolution.Inputs, layers []values.Layer) { layers[1].Values = nil }, false},
		"constraints or deprecation":    {func(i *resolution.Inputs, _ []values.Layer) { i.Choice.Origin.Digest = "x" }, true},
		"another entry":                 {func(i *resolution.Inputs, _ []values.Layer) { i.Choice.Origin.Content = "x" }, false},
		"a version of the same content": {func(i *resolution.Inputs, _ []values.Layer) { i.Choice.Version.Version = "x" }, true},
		"other content":                 {func(i *resolution.Inputs, _ []values.Layer) { i.Content = "x" }, false},
		"another namespace":             {func(i *resolution.Inputs, _ []values.Layer) { i.Installation.Spec.TargetNamespace = "x" }, false},
	} {
		if same := wanted(test.change) == base; same != test.same {
			t.Errorf("%s: the same is %t, want %t", why, same, test.same)
		}
	}
}

// TestHashesStayThoseOnRecord fails when an upgrade of the managers renders every installation again: equal inputs
// have the recorded hashes. Raise inputsFormat if equal inputs result in other objects.
func TestHashesStayThoseOnRecord(t *testing.T) {
	made := resolution.Inputs{
		Installation: &v1.AddonInstallation{}, Content: "sha256:content", KubernetesVersion: "v1.36.3",
		Values: resolution.Values{
			Layers: []values.Layer{{Origin: "catalogue", Values: map[string]any{"a": 1}}, {Origin: "valuesTemplate"}, {Origin: "installation"}},
			Merged: map[string]any{"a": 1},
		},
		Choice: resolution.Choice{
			Origin:  catalogue.Origin{Content: "sha256:entry"},
			Version: &v1.AddonVersion{Template: &v1.Template{Method: v1.MethodHelm}},
		},
		Images: []byte("images"),
	}
	made.Installation.Name = "web"
	made.Installation.Spec.TargetNamespace, made.Installation.Spec.CreateNamespace = "web", true
	made.Data.Cluster.Name = "amber"
	hash, err := made.Hash([]byte("key"))
	if err != nil {
		t.Fatal(err)
	}
	wanted, err := made.Wanted([]byte("key"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "368f139b83f182d2af49c0f4c3fa8478f252a06d173237b142e314a819384895"; hash != want {
		t.Errorf("the inputs: got %s, want %s", hash, want)
	}
	if want := "cdde9096c62ea6118b64463d1b4f563321867f88a3fa36aa485ecc9e98f5454a"; wanted != want {
		t.Errorf("what people say of them: got %s, want %s", wanted, want)
	}
}
