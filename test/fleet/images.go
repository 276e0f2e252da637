package fleet

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Image stores an image with one layer of these files, by path, in the registry, as REPOSITORY:TAG. It returns the
// digest of its manifest.
func (s *Sources) Image(repository, tag string, files map[string]string) (string, error) {
	layer, err := pack("", files)
	if err != nil {
		return "", err
	}
	return s.push(repository, tag, artifact{
		config: types.OCIConfigJSON, about: `{"architecture":"amd64","os":"linux"}`, kind: types.OCILayer, content: layer,
	})
}

// ChartInRegistry stores a chart in the registry as Helm pushes it: repository FOLDER/NAME, the version as tag. It
// returns the digest of its archive.
func (s *Sources) ChartInRegistry(folder string, files map[string]string) (string, error) {
	archive, err := PackChart(files)
	if err != nil {
		return "", err
	}
	_, chart, err := parseChart([]byte(files["Chart.yaml"]))
	if err != nil {
		return "", err
	}
	_, err = s.push(folder+"/"+chart.Name, strings.ReplaceAll(chart.Version, "+", "_"), artifact{
		config: "application/vnd.cncf.helm.config.v1+json", about: "{}",
		kind: "application/vnd.cncf.helm.chart.content.v1.tar+gzip", content: archive,
	})
	return hashOf(archive).String(), err
}

// artifact has the parts of a manifest.
type artifact struct {
	config, kind types.MediaType
	about        string
	content      []byte
}

func (s *Sources) push(repository, tag string, pushed artifact) (string, error) {
	manifest := v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1,
		Config: describe(pushed.config, []byte(pushed.about)), Layers: []v1.Descriptor{describe(pushed.kind, pushed.content)},
	}
	content, err := json.Marshal(manifest)
	if err != nil {
		return "", fmt.Errorf("encoding a manifest: %w", err)
	}
	for _, blob := range [][]byte{[]byte(pushed.about), pushed.content} {
		path := "/v2/" + repository + "/blobs/uploads/?digest=" + hashOf(blob).String()
		if err := s.put(http.MethodPost, path, "application/octet-stream", blob); err != nil {
			return "", err
		}
	}
	err = s.put(http.MethodPut, "/v2/"+repository+"/manifests/"+tag, string(manifest.MediaType), content)
	return hashOf(content).String(), err
}

// put sends a request to the registry past its login, and uncounted.
func (s *Sources) put(method, path, contentType string, content []byte) error {
	request := httptest.NewRequestWithContext(context.Background(), method, path, bytes.NewReader(content))
	request.Header.Set("Content-Type", contentType)
	answer := httptest.NewRecorder()
	s.images.ServeHTTP(answer, request)
	if answer.Code != http.StatusCreated {
		return fmt.Errorf("pushing to %q: status %d: %s", path, answer.Code, strings.TrimSpace(answer.Body.String()))
	}
	return nil
}

func describe(mediaType types.MediaType, content []byte) v1.Descriptor {
	return v1.Descriptor{MediaType: mediaType, Digest: hashOf(content), Size: int64(len(content))}
}

func hashOf(content []byte) v1.Hash {
	sum := sha256.Sum256(content)
	return v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(sum[:])}
}
