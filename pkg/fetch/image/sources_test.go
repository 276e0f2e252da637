package image_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/fetchtest"
	"github.com/trellis-addons/trellis/pkg/fetch/image"
)

func forPlatform(described v1.Descriptor, os, architecture string) v1.Descriptor {
	described.Platform = &v1.Platform{OS: os, Architecture: architecture}
	return described
}

// TestIndexesLeadToOneImageOrAreRefused (AC25): An index leads to the image of one platform, and is refused if it has
// none or leads to another index.
func TestIndexesLeadToOneImageOrAreRefused(t *testing.T) {
	for _, test := range []struct {
		why   string
		build func(server *fetchtest.Registry, images map[string]v1.Descriptor) []v1.Descriptor
		want  string // content of a/x; "" means refused
	}{
		{"linux/amd64 is taken", func(_ *fetchtest.Registry, i map[string]v1.Descriptor) []v1.Descriptor {
			return []v1.Descriptor{forPlatform(i["one"], "linux", "arm64"), forPlatform(i["two"], "linux", "amd64")}
		}, "two"},
		{"else the first for linux", func(_ *fetchtest.Registry, i map[string]v1.Descriptor) []v1.Descriptor {
			return []v1.Descriptor{forPlatform(i["two"], "windows", "amd64"), forPlatform(i["one"], "linux", "arm64"), forPlatform(i["two"], "linux", "s390x")}
		}, "one"},
		{"or the first for nobody", func(_ *fetchtest.Registry, i map[string]v1.Descriptor) []v1.Descriptor {
			return []v1.Descriptor{i["one"], i["two"]}
		}, "one"},
		{"attestations are passed over", func(_ *fetchtest.Registry, i map[string]v1.Descriptor) []v1.Descriptor {
			return []v1.Descriptor{forPlatform(i["one"], "unknown", "unknown"), forPlatform(i["two"], "linux", "arm64")}
		}, "two"},
		{"none for linux", func(_ *fetchtest.Registry, i map[string]v1.Descriptor) []v1.Descriptor {
			return []v1.Descriptor{forPlatform(i["one"], "windows", "amd64"), forPlatform(i["two"], "unknown", "unknown")}
		}, ""},
		{"an empty index", func(*fetchtest.Registry, map[string]v1.Descriptor) []v1.Descriptor { return nil }, ""},
		{"an index of indexes", func(server *fetchtest.Registry, i map[string]v1.Descriptor) []v1.Descriptor {
			return []v1.Descriptor{server.Index("x", "inner", i["one"])}
		}, ""},
		{"an index that calls an index an image", func(server *fetchtest.Registry, i map[string]v1.Descriptor) []v1.Descriptor {
			inner := server.Index("x", "inner", i["one"])
			inner.MediaType = types.OCIManifestSchema1
			return []v1.Descriptor{inner}
		}, ""},
	} {
		t.Run(test.why, func(t *testing.T) {
			server := fetchtest.ServeRegistry(t)
			images := map[string]v1.Descriptor{
				"one": server.Image("x", "one", layer("a/x", "one")), "two": server.Image("x", "two", layer("a/x", "two")),
			}
			pushed := server.Index("x", "v1", test.build(server, images)...)
			got, revision, err := fetchInto(t, client(t), of(server, "x:v1", "a"))
			if test.want == "" {
				if !isRefused(err) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil || got["x"] != test.want || revision.Name != pushed.Digest.String() {
				t.Errorf("got %v at %v, %v", got, revision, err)
			}
		})
	}
}

// TestImagesOfOddShapesAreRefused (AC25): An image with no layers, with thousands of them or of another kind is
// refused.
func TestImagesOfOddShapesAreRefused(t *testing.T) {
	for why, change := range map[string]func(*fetchtest.Registry, *v1.Manifest){
		"an artifact that is no image": func(s *fetchtest.Registry, m *v1.Manifest) {
			m.Config = s.Blob("x", "application/vnd.example+json", []byte("{}"))
		},
		"a chart": func(s *fetchtest.Registry, m *v1.Manifest) {
			m.Config = s.Blob("x", fetchtest.ChartConfig, []byte("{}"))
		},
		"no layers": func(_ *fetchtest.Registry, m *v1.Manifest) { m.Layers = []v1.Descriptor{} },
		"5000 layers": func(_ *fetchtest.Registry, m *v1.Manifest) {
			for range 4999 {
				m.Layers = append(m.Layers, m.Layers[0])
			}
		},
		"a layer larger than all may be": func(_ *fetchtest.Registry, m *v1.Manifest) { m.Layers[0].Size = 201 << 20 },
		"layers larger than all may be": func(_ *fetchtest.Registry, m *v1.Manifest) {
			second := m.Layers[0]
			m.Layers[0].Size, second.Size = 150<<20, 60<<20
			m.Layers = append(m.Layers, second)
		},
		"a layer of a negative size":    func(_ *fetchtest.Registry, m *v1.Manifest) { m.Layers[0].Size = -1 },
		"a layer larger than it says":   func(_ *fetchtest.Registry, m *v1.Manifest) { m.Layers[0].Size-- },
		"a layer by another algorithm":  func(_ *fetchtest.Registry, m *v1.Manifest) { m.Layers[0].Digest.Algorithm = "sha512" },
		"a layer by a path as a digest": func(_ *fetchtest.Registry, m *v1.Manifest) { m.Layers[0].Digest.Hex = "../../x" },
	} {
		t.Run(why, func(t *testing.T) {
			server := fetchtest.ServeRegistry(t)
			push(server, func(manifest *v1.Manifest) { change(server, manifest) })
			if _, _, err := fetchInto(t, client(t), of(server, "x:v1", "a")); !isRefused(err) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestLayersThatLieElsewhereAreNotFetched (V29): A layer that names URLs is refused, and they are not dialled.
func TestLayersThatLieElsewhereAreNotFetched(t *testing.T) {
	canary := fetchtest.Serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for _, mediaType := range []types.MediaType{types.DockerForeignLayer, types.OCIRestrictedLayer, types.OCILayer} {
		server := fetchtest.ServeRegistry(t)
		push(server, func(manifest *v1.Manifest) {
			manifest.Layers[0].MediaType = mediaType
			manifest.Layers[0].URLs = []string{canary.URL + "/layer"}
		})
		reference := of(server, "x:v1", "a")
		reference.Credentials.CA = append(reference.Credentials.CA, canary.CA...)
		if _, _, err := fetchInto(t, client(t), reference); !isRefused(err) || !strings.Contains(err.Error(), "is at another address") {
			t.Errorf("%s: got %v", mediaType, err)
		}
	}
	if seen := canary.Requests(); len(seen) != 0 {
		t.Errorf("the URL of a layer was asked: %v", seen)
	}
}

// moving serves the tag v1 once unchanged, and as v2 from then on.
func moving(next http.Handler) http.Handler {
	asked := 0
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if tag, ok := strings.CutSuffix(r.URL.Path, "/manifests/v1"); ok {
			if asked++; asked > 1 {
				r.URL.Path = tag + "/manifests/v2"
			}
		}
		next.ServeHTTP(w, r)
	})
}

// TestImageTagThatMovesIsResolvedOnce (V32): A tag of an image that moves between two requests is resolved once.
func TestImageTagThatMovesIsResolvedOnce(t *testing.T) {
	server := fetchtest.ServeRegistry(t, moving)
	first := server.Image("x", "v1", layer("a/x", "good"))
	server.Image("x", "v2", layer("a/x", "bad"))
	got, revision, err := fetchInto(t, client(t), of(server, "x:v1", "a"))
	if err != nil || revision.Name != first.Digest.String() {
		t.Fatalf("got %v, %v", revision, err)
	}
	if diff := cmp.Diff(map[string]string{"x": "good"}, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if count := server.Count(http.MethodGet, "/v2/x/manifests/v1"); count != 1 {
		t.Errorf("the tag was asked for %d times", count)
	}
	digest := server.Count(http.MethodGet, "/v2/x/manifests/"+first.Digest.String())
	if digest != 1 {
		t.Errorf("the digest was asked for %d times", digest)
	}
}

// checking is a source that checks the resolved revision against a signature, which the contract allows.
type checking struct {
	fetch.Source
	check func(fetch.Revision) error
}

// Fetch checks first.
func (c checking) Fetch(ctx context.Context, reference fetch.Reference, revision fetch.Revision, folder string) (string, error) {
	if err := c.check(revision); err != nil {
		return "", fmt.Errorf("check signature: %w", err)
	}
	return c.Source.Fetch(ctx, reference, revision, folder)
}

// TestNothingIsFetchedThatWasNotVerified (V23): No content of a revision is fetched that a check refuses.
func TestNothingIsFetchedThatWasNotVerified(t *testing.T) {
	server := fetchtest.ServeRegistry(t)
	signed := server.Image("x", "v1", layer("a/x", "signed"))
	server.Image("x", "v2", layer("a/x", "not signed"))
	errNotSigned := errors.New("not signed")
	source := checking{client(t), func(revision fetch.Revision) error {
		if revision.Name != signed.Digest.String() {
			return errNotSigned
		}
		return nil
	}}
	if got, _, err := fetchInto(t, source, of(server, "x:v1", "a")); err != nil || got["x"] != "signed" {
		t.Errorf("got %v, %v", got, err)
	}
	before := len(server.Requests())
	if got, _, err := fetchInto(t, source, of(server, "x:v2", "a")); !errors.Is(err, errNotSigned) || len(got) != 0 {
		t.Errorf("got %v, %v", got, err)
	}
	if count := len(server.Requests()) - before; count != 1 {
		t.Errorf("what was not verified took %d requests, more than the look at the tag", count)
	}
}

// TestImageWithAnotherDigestIsRefused (AC26): An image whose digest is not that of the catalogue is refused.
func TestImageWithAnotherDigestIsRefused(t *testing.T) {
	server := fetchtest.ServeRegistry(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if path, ok := strings.CutSuffix(r.URL.Path, strings.Repeat("a", 64)); ok { // another image for a digest that is none of its own
				r.URL.Path = strings.TrimSuffix(path, "sha256:") + "other"
			}
			next.ServeHTTP(w, r)
		})
	})
	pushed := server.Image("x", "v1", layer("a/x", "right"))
	server.Image("x", "other", layer("a/x", "wrong"))
	for why, test := range map[string]struct {
		name string
		ok   bool
	}{
		"the right digest":              {"x@" + pushed.Digest.String(), true},
		"with a tag that says no more":  {"x:gone@" + pushed.Digest.String(), true},
		"a digest of something else":    {"x@sha256:" + strings.Repeat("a", 64), false},
		"with the tag of what is there": {"x:v1@sha256:" + strings.Repeat("a", 64), false},
	} {
		got, _, err := fetchInto(t, client(t), of(server, test.name, "a"))
		if test.ok && (err != nil || got["x"] != "right") || !test.ok && (!isRefused(err) || len(got) != 0) {
			t.Errorf("%s: got %v, %v", why, got, err)
		}
	}
	if seen := server.Count(http.MethodGet, "/v2/x/manifests/v1"); seen != 0 {
		t.Errorf("the tag was asked for %d times", seen)
	}
}

// TestLayerWithOtherBytesIsRefused (V31): A layer whose bytes do not match its digest is refused.
func TestLayerWithOtherBytesIsRefused(t *testing.T) {
	evil := layer("a/x", "evil")
	server := fetchtest.ServeRegistry(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.Path, "/blobs/") {
				_, _ = w.Write(evil)
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	server.Image("x", "v1", layer("a/x", "good"))
	got, _, err := fetchInto(t, client(t), of(server, "x:v1", "a"))
	if !isRefused(err) || len(got) != 0 {
		t.Errorf("got %v, %v", got, err)
	}
}

// TestRegistriesAreVerified (AC17): A registry whose certificate is not trusted gets no request.
func TestRegistriesAreVerified(t *testing.T) {
	server := fetchtest.ServeRegistry(t)
	server.Image("x", "v1", layer("a/x", "x"))
	reference := of(server, "x:v1", "a")
	reference.Credentials.CA = nil
	var unavailable *fetch.UnavailableError
	if _, err := client(t).Resolve(t.Context(), reference); !errors.As(err, &unavailable) || len(server.Requests()) != 0 {
		t.Errorf("got %v", err)
	}
}

// TestImageReferencesOfOtherKindsAreRefused (AC13): References that do not name an image are refused.
func TestImageReferencesOfOtherKindsAreRefused(t *testing.T) {
	for _, name := range []string{"file:///etc:v1", "http://127.0.0.1/x:v1", "user:canary@127.0.0.1/x:v1", "127.0.0.1/x", "x:v1@sha512:00"} {
		reference := fetch.Reference{Location: image.Location{Image: image.Name(name)}}
		if _, err := client(t).Resolve(t.Context(), reference); !isRefused(err) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%q: got %v", name, err)
		}
	}
	if _, err := client(t).Resolve(t.Context(), fetch.Reference{}); err == nil {
		t.Error("a reference to no image is resolved")
	}
}
