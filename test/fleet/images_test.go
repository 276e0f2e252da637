package fleet

import (
	"io/fs"
	"net/netip"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/git"
	"github.com/trellis-addons/trellis/pkg/fetch/helmrepo"
	"github.com/trellis-addons/trellis/pkg/fetch/image"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
)

// TestEverySource fetches the stored content of each kind of source, with the product's own transports.
func TestEverySource(t *testing.T) {
	s := SourcesForTest(t)
	network := outbound.New(outbound.Options{AllowCIDRs: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	t.Cleanup(network.Close)
	files := map[string]string{"addon/a.yaml": "a: 1\n"}
	digest, err := s.Image("team/addons", "v1", files)
	if err != nil {
		t.Fatal(err)
	}
	commit, err := s.Commit("addons", files)
	if err != nil {
		t.Fatal(err)
	}
	archive, err := s.ChartInRegistry("charts", chart("1.0.0"))
	if err != nil {
		t.Fatal(err)
	}
	s.RequireLogin(SourceRegistry, "u", "p")
	login := fetch.Credentials{CA: s.CA, Username: "u", Password: "p"}
	for _, test := range []struct {
		why       string
		source    fetch.Source
		reference fetch.Reference
		want      fetch.Revision
		files     map[string]string
	}{
		{"an image", image.New(network), fetch.Reference{
			Location: image.Location{Image: image.Name(s.Registry + "/team/addons:v1"), Path: "addon"}, Credentials: login,
		}, fetch.Revision{Name: digest}, map[string]string{"a.yaml": "a: 1\n"}},
		{"git by ssh", git.New(network), fetch.Reference{
			Location:    git.Location{Remote: s.SSH.URL + "/addons.git", Branch: "main", Path: "addon"},
			Credentials: fetch.Credentials{PrivateKey: s.SSH.Key, KnownHosts: s.SSH.KnownHosts},
		}, fetch.Revision{Name: commit}, map[string]string{"a.yaml": "a: 1\n"}},
		{"a chart in a registry", helmrepo.New(network), fetch.Reference{
			Location: helmrepo.Location{URL: "oci://" + s.Registry + "/charts", Chart: "web", Version: "1.0.0"}, Credentials: login,
		}, fetch.Revision{Name: "1.0.0", Digest: archive}, chart("1.0.0")},
	} {
		t.Run(test.why, func(t *testing.T) {
			revision, err := test.source.Resolve(t.Context(), test.reference)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, revision); diff != "" {
				t.Errorf("revision (-want +got):\n%s", diff)
			}
			folder := t.TempDir() + "/content"
			if err := os.Mkdir(folder, fs.ModePerm); err != nil {
				t.Fatal(err)
			}
			if _, err := test.source.Fetch(t.Context(), test.reference, revision, folder); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.files, filesBelow(t, folder)); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
}
