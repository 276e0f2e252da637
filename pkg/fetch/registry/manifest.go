package registry

import (
	"encoding/json"
	"fmt"
	"mime"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/trellis-addons/trellis/pkg/values/strictyaml"
)

// Media types of manifests.
const (
	MediaTypeImage       = "application/vnd.oci.image.manifest.v1+json"
	MediaTypeIndex       = "application/vnd.oci.image.index.v1+json"
	MediaTypeDockerImage = "application/vnd.docker.distribution.manifest.v2+json"
	MediaTypeDockerList  = "application/vnd.docker.distribution.manifest.list.v2+json"
)

// Manifest has exactly one of Image and Index.
type Manifest struct {
	// Digest is computed from the bytes.
	Digest string
	Image  *v1.Manifest
	Index  *v1.IndexManifest
}

var imageTypes = []string{MediaTypeImage, MediaTypeDockerImage}

// IsImage reports whether a media type is the one of an image's manifest.
func IsImage(mediaType string) bool { return slices.Contains(imageTypes, mediaType) }

// elementsLimit bounds the elements of a JSON document before it is decoded: "{}," becomes a struct of
// fifty times its size. An index of a thousand platforms has 12,000.
const elementsLimit = 20_000

// readManifest requires that header, media type and fields of a document agree. Otherwise two
// readers could see different images (CVE-2021-41190).
func (s *Session) readManifest(content []byte, digest, contentType string) (*Manifest, error) {
	if strictyaml.Elements(content) > elementsLimit {
		return nil, s.refused(digest, fmt.Sprintf("its manifest has more than %d elements", elementsLimit))
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(content, &fields) != nil {
		return nil, s.refused(digest, "its manifest is not JSON")
	}
	kind, err := s.kind(fields, digest, contentType)
	if err != nil {
		return nil, err
	}
	read := &Manifest{Digest: digest}
	var target any
	hasImage, hasIndex := has(fields, "config", "layers", "fsLayers"), has(fields, "manifests")
	switch {
	case IsImage(kind) && hasImage && !hasIndex:
		read.Image = &v1.Manifest{}
		target = read.Image
	case (kind == MediaTypeIndex || kind == MediaTypeDockerList) && hasIndex && !hasImage:
		read.Index = &v1.IndexManifest{}
		target = read.Index
	default:
		return nil, s.refused(digest, "it can be read as an image and as an index, or as neither")
	}
	if json.Unmarshal(content, target) != nil {
		return nil, s.refused(digest, "its manifest can't be read")
	}
	return read, nil
}

// kind is the media type on which header and document agree. File servers send generic headers.
func (s *Session) kind(fields map[string]json.RawMessage, digest, contentType string) (string, error) {
	sent, own := mediaType(contentType), ""
	if raw, ok := fields["mediaType"]; ok && json.Unmarshal(raw, &own) != nil {
		return "", s.refused(digest, "its media type is not a string")
	}
	switch {
	case own == "" && sent == "":
		return "", s.refused(digest, "its manifest has no media type")
	case own != "" && sent != "" && own != sent:
		return "", s.refused(digest, "the media type of its manifest differs from that of the registry's answer")
	case own == "":
		own = sent
	}
	if !IsImage(own) && own != MediaTypeIndex && own != MediaTypeDockerList {
		return "", s.refused(digest, "its media type is neither that of an image nor of an index")
	}
	return own, nil
}

func mediaType(header string) string {
	sent, _, err := mime.ParseMediaType(header)
	if err != nil || sent == "application/json" || sent == "text/plain" || sent == "application/octet-stream" {
		return ""
	}
	return sent
}

// has finds fields without regard to case, as the decoder does.
func has(fields map[string]json.RawMessage, names ...string) bool {
	for field := range fields {
		if slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, field) }) {
			return true
		}
	}
	return false
}
