package registry_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/fetchtest"
	"github.com/trellis-addons/trellis/pkg/fetch/registry"
)

// TestManifestsOfManyElementsAreRefused (V30): A manifest with very many elements in few bytes is refused before it
// is decoded, since each "{}," becomes a struct.
func TestManifestsOfManyElementsAreRefused(t *testing.T) {
	const config = `"config": {}, `
	fill := func(text string, size int) string { return strings.Repeat(text, size/len(text)) }
	for _, test := range []struct {
		why, mediaType, content, want string
	}{
		{"layers", registry.MediaTypeImage, `{` + config + `"layers": [` + fill("{},", 1_000_000) + `{}]}`, "more than 20000 elements"},
		{"layers of 4 MiB", registry.MediaTypeImage, `{` + config + `"layers": [` + fill("{},", 4<<20-100) + `{}]}`, "larger than 1 MiB"},
		{"images", registry.MediaTypeIndex, `{"manifests": [` + fill("{},", 1_000_000) + `{}]}`, "more than 20000 elements"},
		{"images of docker", registry.MediaTypeDockerList, `{"manifests": [` + fill("null,", 1_000_000) + `null]}`, "more than 20000 elements"},
		{"lists of layers", registry.MediaTypeImage, `{` + config + fill(`"layers":[{}],`, 1_000_000) + `"layers": []}`, "more than 20000 elements"},
		{"addresses", registry.MediaTypeImage, `{"config": {"urls": [` + fill(`"",`, 1_000_000) + `""]}}`, "more than 20000 elements"},
		{"fields", registry.MediaTypeImage, `{` + config + fill(`"":0,`, 1_000_000) + `"x": 0}`, "more than 20000 elements"},
		{"depth", registry.MediaTypeImage, `{"annotations": ` + fill("[", 1_000_000), "more than 20000 elements"},
		{"as many layers as may be", registry.MediaTypeImage, `{` + config + `"layers": [` + fill("{},", 29_900) + `{}]}`, ""},
		{"a long text", registry.MediaTypeImage, `{` + config + `"layers": [], "annotations": {"x": "` + fill("text", 1_000_000) + `"}}`, ""},
	} {
		t.Run(test.why, func(t *testing.T) {
			server := fetchtest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", test.mediaType)
				_, _ = w.Write([]byte(test.content))
			}))
			session := open(t, strings.TrimPrefix(server.URL, "https://"), "x", trusting(fetch.Credentials{}, server))
			var err error
			taken := fetchtest.Allocated(func() { _, err = session.Manifest(t.Context(), "v1") })
			if test.want == "" && err != nil || test.want != "" && (!isRefused(err) || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v", err)
			}
			if taken > 24<<20 { // including the server's copy and the memory of the connection
				t.Errorf("%d MiB were allocated", taken>>20)
			}
		})
	}
}

// TestLargeManifestsAreRead: The largest honest manifests are accepted: an image of as many layers as docker creates,
// with an annotation each, and an index of a thousand platforms with an attestation each.
func TestLargeManifestsAreRead(t *testing.T) {
	digest := "sha256:" + strings.Repeat("a", 64)
	layers, images := []map[string]any{}, []map[string]any{}
	for i := range 127 {
		layers = append(layers, map[string]any{
			"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", "digest": digest, "size": i,
			"annotations": map[string]string{"org.opencontainers.image.title": fmt.Sprintf("part, [%d] of {x}.tar.gz", i)},
		})
	}
	for i := range 1000 {
		images = append(images, map[string]any{
			"mediaType": registry.MediaTypeImage, "digest": digest, "size": i,
			"platform":    map[string]any{"architecture": "arm64", "os": "linux", "variant": "v8", "os.version": "1", "os.features": []string{"x"}},
			"annotations": map[string]string{"vnd.docker.reference.type": "attestation-manifest", "vnd.docker.reference.digest": digest},
		})
	}
	for mediaType, manifest := range map[string]map[string]any{
		registry.MediaTypeImage: {"config": map[string]any{}, "layers": layers},
		registry.MediaTypeIndex: {"manifests": images},
	} {
		content, err := json.MarshalIndent(manifest, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		server := fetchtest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", mediaType)
			_, _ = w.Write(content)
		}))
		session := open(t, strings.TrimPrefix(server.URL, "https://"), "x", trusting(fetch.Credentials{}, server))
		if _, err := session.Manifest(t.Context(), "v1"); err != nil {
			t.Errorf("%d bytes: %v", len(content), err)
		}
	}
}

// TestDockerConfigsOfManyElementsAreRefused (V30): A docker config of many small entries is refused before it is
// decoded, and one of a thousand registries is read.
func TestDockerConfigsOfManyElementsAreRefused(t *testing.T) {
	for entries, fits := range map[int]bool{1000: true, 100_000: false} {
		var config strings.Builder
		config.WriteString(`{"auths": {"r.example.com": ` + basicAuth())
		for i := range entries {
			fmt.Fprintf(&config, `,"%x":{}`, i)
		}
		config.WriteString("}}")
		content := []byte(config.String())
		var err error
		taken := fetchtest.Allocated(func() {
			_, err = registry.Open(nil, registry.Repository{Host: "r.example.com", Name: "x"}, fetch.Credentials{DockerConfig: content})
		})
		if fits && err != nil || !fits && (!isRefused(err) || !strings.Contains(err.Error(), "elements")) {
			t.Errorf("%d entries: got %v", entries, err)
		}
		if taken > 4<<20 {
			t.Errorf("%d entries: %d MiB were allocated", entries, taken>>20)
		}
	}
}
