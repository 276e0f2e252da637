package image

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/archive"
	"github.com/trellis-addons/trellis/pkg/fetch/registry"
)

const (
	// layerLimit is the maximum number of layers of an image, layersLimit of their compressed bytes.
	layerLimit  = 64
	layersLimit = 200 << 20
)

var packings = map[string]archive.Packing{
	"application/vnd.oci.image.layer.v1.tar":            archive.Plain,
	"application/vnd.oci.image.layer.v1.tar+gzip":       archive.Gzip,
	"application/vnd.oci.image.layer.v1.tar+zstd":       archive.Zstd,
	"application/vnd.docker.image.rootfs.diff.tar.gzip": archive.Gzip,
	"application/vnd.docker.image.rootfs.diff.tar.zstd": archive.Zstd,
	"application/vnd.docker.image.rootfs.diff.tar":      archive.Plain,
	"application/vnd.docker.container.image.rootfs.tar": archive.Plain,
}

// configs are the media types of image configurations; other artifacts have other types.
var configs = map[string]bool{
	"application/vnd.oci.image.config.v1+json":       true,
	"application/vnd.docker.container.image.v1+json": true,
}

func findLayers(ctx context.Context, session *registry.Session, digest, about string) ([]v1.Descriptor, error) {
	manifest, err := session.Manifest(ctx, digest)
	if err != nil {
		return nil, err
	}
	if manifest.Index != nil {
		chosen, rule := choose(manifest.Index.Manifests)
		if rule != "" {
			return nil, &fetch.RefusedError{Subject: about, Rule: rule}
		}
		if manifest, err = session.Manifest(ctx, chosen); err != nil {
			return nil, err
		}
	}
	if manifest.Image == nil {
		return nil, &fetch.RefusedError{Subject: about, Rule: "it is an index of indexes"}
	}
	if rule := imageRule(manifest.Image); rule != "" {
		return nil, &fetch.RefusedError{Subject: about, Rule: rule}
	}
	return manifest.Image.Layers, nil
}

// choose picks the image of an index: for linux/amd64, otherwise the first for linux or no platform.
func choose(entries []v1.Descriptor) (digest, rule string) {
	for _, entry := range entries {
		if !registry.IsImage(string(entry.MediaType)) || !forLinux(entry.Platform) {
			continue
		}
		if digest == "" {
			digest = entry.Digest.String()
		}
		if entry.Platform != nil && entry.Platform.Architecture == "amd64" {
			digest = entry.Digest.String()
			break
		}
	}
	switch {
	case digest == "":
		return "", "the index has no image for linux"
	case !registry.IsDigest(digest):
		return "", "the digest of an image in the index is not a SHA-256"
	}
	return digest, ""
}

func forLinux(platform *v1.Platform) bool {
	return platform == nil || platform.OS == "linux" || platform.OS == ""
}

func imageRule(image *v1.Manifest) string {
	if !configs[string(image.Config.MediaType)] {
		return fmt.Sprintf("it is an artifact of type %q, not an image", cut(string(image.Config.MediaType)))
	}
	if len(image.Layers) == 0 {
		return "it has no layers"
	}
	if len(image.Layers) > layerLimit {
		return fmt.Sprintf("it has more than %d layers", layerLimit)
	}
	total := int64(0)
	for _, layer := range image.Layers {
		if rule := layerRule(layer); rule != "" {
			return rule
		}
		if total += layer.Size; total > layersLimit {
			return fmt.Sprintf("its layers are larger than %d MiB", layersLimit>>20)
		}
	}
	return ""
}

func layerRule(layer v1.Descriptor) string {
	mediaType := string(layer.MediaType)
	switch {
	case len(layer.URLs) > 0 || strings.Contains(mediaType, "foreign") || strings.Contains(mediaType, "nondistributable"):
		return "it has a layer that is at another address"
	case strings.HasSuffix(mediaType, "+encrypted"):
		return "it has an encrypted layer"
	case packings[mediaType] == "":
		return fmt.Sprintf("it has a layer of type %q, which is not known", cut(mediaType))
	case !registry.IsDigest(layer.Digest.String()) || layer.Size <= 0 || layer.Size > layersLimit:
		return "it has a layer without a SHA-256 or with an impossible size"
	}
	return ""
}

func cut(whole string) string { return text.Cut(whole, 120) }

func addLayer(ctx context.Context, session *registry.Session, layer v1.Descriptor, stack *stack, folder string) error {
	file, err := archive.Nameless(ctx, filepath.Dir(folder))
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if err := session.Blob(ctx, layer.Digest.String(), layer.Size, file); err != nil {
		return err
	}
	if _, err := file.File.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return stack.add(ctx, file.File, packings[string(layer.MediaType)])
}
