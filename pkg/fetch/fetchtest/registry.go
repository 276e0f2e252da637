package fetchtest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Registry is an OCI registry, go-containerregistry's own. It accepts any content.
type Registry struct {
	*Server
	t testing.TB
	// Host is host:port, as in references.
	Host string

	handler http.Handler // without wrappers
}

// ServeRegistry starts a registry behind wrappers, the first one outermost.
func ServeRegistry(t testing.TB, wrappers ...func(http.Handler) http.Handler) *Registry {
	t.Helper()
	backend := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	handler := backend
	for i := range wrappers {
		handler = wrappers[len(wrappers)-1-i](handler)
	}
	server := Serve(t, handler)
	return &Registry{Server: server, t: t, Host: server.Listener.Addr().String(), handler: backend}
}

// put sends a request to the registry past its wrappers.
func (r *Registry) put(method, path, contentType string, content []byte) {
	r.t.Helper()
	request, err := http.NewRequestWithContext(r.t.Context(), method, path, bytes.NewReader(content))
	if err != nil {
		r.t.Fatal(err)
	}
	request.Header.Set("Content-Type", contentType)
	answer := &discarded{header: http.Header{}}
	r.handler.ServeHTTP(answer, request)
	if answer.status != http.StatusCreated {
		r.t.Fatalf("%s %s: status %d: %s", method, path, answer.status, answer.content.String())
	}
}

type discarded struct {
	header  http.Header
	status  int
	content bytes.Buffer
}

// Header implements http.ResponseWriter.
func (d *discarded) Header() http.Header { return d.header }

// WriteHeader implements http.ResponseWriter.
func (d *discarded) WriteHeader(status int) { d.status = status }

func (d *discarded) Write(content []byte) (int, error) { return d.content.Write(content) }

// Blob stores a blob and returns its descriptor.
func (r *Registry) Blob(repository string, mediaType types.MediaType, content []byte) v1.Descriptor {
	r.t.Helper()
	sum := sha256.Sum256(content)
	digest := v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(sum[:])}
	r.put(http.MethodPost, "/v2/"+repository+"/blobs/uploads/?digest="+digest.String(), "application/octet-stream", content)
	return v1.Descriptor{MediaType: mediaType, Digest: digest, Size: int64(len(content))}
}

// Manifest stores a manifest, encoded unless it is bytes, and returns its descriptor.
func (r *Registry) Manifest(repository, tag string, mediaType types.MediaType, manifest any) v1.Descriptor {
	r.t.Helper()
	content, raw := manifest.([]byte)
	if !raw {
		var err error
		if content, err = json.Marshal(manifest); err != nil {
			r.t.Fatal(err)
		}
	}
	r.put(http.MethodPut, "/v2/"+repository+"/manifests/"+tag, string(mediaType), content)
	sum := sha256.Sum256(content)
	return v1.Descriptor{
		MediaType: mediaType, Size: int64(len(content)), Digest: v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(sum[:])},
	}
}

// Image stores an image with gzipped archives as layers, the lowest first.
func (r *Registry) Image(repository, tag string, layers ...[]byte) v1.Descriptor {
	r.t.Helper()
	image := v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1,
		Config: r.Blob(repository, types.OCIConfigJSON, []byte(`{"architecture":"amd64","os":"linux"}`)),
	}
	for _, layer := range layers {
		image.Layers = append(image.Layers, r.Blob(repository, types.OCILayer, layer))
	}
	return r.Manifest(repository, tag, types.OCIManifestSchema1, image)
}

// Index stores an index of existing manifests.
func (r *Registry) Index(repository, tag string, manifests ...v1.Descriptor) v1.Descriptor {
	r.t.Helper()
	return r.Manifest(repository, tag, types.OCIImageIndex, v1.IndexManifest{
		SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: manifests,
	})
}

// Media types of charts, from Helm's specification of charts in registries.
const (
	ChartConfig  types.MediaType = "application/vnd.cncf.helm.config.v1+json"
	ChartContent types.MediaType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
)

// Chart stores a chart's archive as Helm pushes it.
func (r *Registry) Chart(repository, tag string, archive []byte) v1.Descriptor {
	r.t.Helper()
	return r.Manifest(repository, tag, types.OCIManifestSchema1, v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1,
		Config: r.Blob(repository, ChartConfig, []byte(`{}`)),
		Layers: []v1.Descriptor{r.Blob(repository, ChartContent, archive)},
	})
}
