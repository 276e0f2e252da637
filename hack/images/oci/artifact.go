package oci

import (
	"encoding/json"
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// emptyConfig is the config of a manifest that has none, as of OCI 1.1.
const emptyConfig types.MediaType = "application/vnd.oci.empty.v1+json"

// artifact is a manifest of one blob that says something of a subject.
type artifact struct {
	manifest []byte
	content  v1.Layer
}

var _ partial.CompressedImageCore = (*artifact)(nil)

// artifactOf makes the manifest.
func artifactOf(subject v1.Descriptor, content []byte, kind types.MediaType, annotations map[string]string) (v1.Image, error) {
	layer := static.NewLayer(content, kind)
	digest, err := layer.Digest()
	if err != nil {
		return nil, fmt.Errorf("making the digest of %s: %w", kind, err)
	}
	config := static.NewLayer([]byte("{}"), emptyConfig)
	configDigest, err := config.Digest()
	if err != nil {
		return nil, fmt.Errorf("making the digest of a config: %w", err)
	}
	manifest, err := json.Marshal(v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1, ArtifactType: string(kind),
		Config:  v1.Descriptor{MediaType: emptyConfig, Size: 2, Digest: configDigest},
		Layers:  []v1.Descriptor{{MediaType: kind, Size: int64(len(content)), Digest: digest}},
		Subject: &v1.Descriptor{MediaType: subject.MediaType, Size: subject.Size, Digest: subject.Digest}, Annotations: annotations,
	})
	if err != nil {
		return nil, fmt.Errorf("writing the manifest of %s: %w", kind, err)
	}
	made, err := partial.CompressedToImage(&artifact{manifest, layer})
	if err != nil {
		return nil, fmt.Errorf("making the manifest of %s: %w", kind, err)
	}
	return made, nil
}

// RawConfigFile implements partial.ImageCore.
func (a *artifact) RawConfigFile() ([]byte, error) { return []byte("{}"), nil }

// MediaType implements partial.ImageCore.
func (a *artifact) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }

// RawManifest implements partial.CompressedImageCore.
func (a *artifact) RawManifest() ([]byte, error) { return a.manifest, nil }

// LayerByDigest implements partial.CompressedImageCore.
func (a *artifact) LayerByDigest(digest v1.Hash) (partial.CompressedLayer, error) {
	if own, err := a.content.Digest(); err != nil || own != digest {
		return nil, fmt.Errorf("no layer %s", digest)
	}
	return a.content, nil
}
