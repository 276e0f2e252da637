package release

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/trellis-addons/trellis/test/fleet"
)

// password of the registry.
const password = "a-word-of-the-site"

// pushImages copies the images of the release's archives to the registry, as any tool for OCI layouts does.
func pushImages(t *testing.T, sources *fleet.Sources, folder string) {
	t.Helper()
	archives, err := filepath.Glob(filepath.Join(folder, "*-oci.tar"))
	if err != nil || len(archives) != 2 {
		t.Fatalf("there are %d archives of images: %v", len(archives), err)
	}
	for _, archive := range archives {
		unpacked := t.TempDir()
		if output, err := exec.CommandContext(t.Context(), "tar", "-x", "-C", unpacked, "-f", archive).CombinedOutput(); err != nil {
			t.Fatalf("unpacking %q: %v\n%s", archive, err, output)
		}
		program, _, _ := strings.Cut(filepath.Base(archive), "-"+asked)
		push(t, sources, unpacked, sources.Registry+"/trellis/"+program)
	}
}

func push(t *testing.T, sources *fleet.Sources, folder, repository string) {
	t.Helper()
	index, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	to, err := name.NewRepository(repository)
	if err != nil {
		t.Fatal(err)
	}
	options := []remote.Option{
		remote.WithTransport(sources.Transport(t)), remote.WithContext(t.Context()),
		remote.WithAuth(&authn.Basic{Username: "robot", Password: password}),
	}
	for _, one := range manifest.Manifests {
		at := to.Digest(one.Digest.String())
		if one.MediaType.IsIndex() {
			inner, err := index.ImageIndex(one.Digest)
			if err != nil {
				t.Fatal(err)
			}
			err = remote.WriteIndex(at, inner, options...)
			if err != nil {
				t.Fatalf("pushing %s: %v", at, err)
			}
			continue
		}
		image, err := index.Image(one.Digest)
		if err != nil {
			t.Fatal(err)
		}
		if err := remote.Write(at, image, options...); err != nil {
			t.Fatalf("pushing %s: %v", at, err)
		}
	}
}

// addonOf is what the add-ons have: a Deployment whose image has a public name.
const addonOf = `apiVersion: apps/v1
kind: Deployment
metadata: {name: app}
spec:
  selector: {matchLabels: {app: app}}
  template:
    metadata: {labels: {app: app}}
    spec: {containers: [{name: app, image: 'quay.io/team/app:1'}]}
`

// publish copies what add-ons are made of to the registry, where the guide has it.
func publish(t *testing.T, sources *fleet.Sources) {
	t.Helper()
	if _, err := sources.Image("quay/team/addons", "v1", map[string]string{"app/all.yaml": addonOf}); err != nil {
		t.Fatal(err)
	}
	_, err := sources.ChartInRegistry("charts/stable", map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: app\nversion: 1.0.0\n", "templates/all.yaml": addonOf,
	})
	if err != nil {
		t.Fatal(err)
	}
}
