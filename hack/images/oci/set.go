package oci

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/trellis-addons/trellis/hack/images/archive"
	"github.com/trellis-addons/trellis/hack/images/checkout"
	"github.com/trellis-addons/trellis/hack/images/program"
	"github.com/trellis-addons/trellis/hack/images/sbom"
)

// User and group that programs run as, by number: a cluster can tell then that it is not root.
const User = "65532:65532"

// Set is what there is of one program.
type Set struct {
	// Program is its name, which the repository of its images ends in.
	Program string
	// Version is the tag of the index.
	Version string
	Index   v1.ImageIndex
	Images  []Image
}

// Image is a program for one platform.
type Image struct {
	Platform v1.Platform
	Image    v1.Image
	// SBOM lists what is in it; it refers to the image as its subject.
	SBOM v1.Image
}

// Build is what was made of a checkout.
type Build struct {
	// Toolchain is the release of Go that made it, such as go1.26.8: with it, all of it is made again.
	Toolchain string
	Stamp     checkout.Stamp
	Sets      []Set
}

// Make builds all programs of a module for platforms, one after the other: Go's own work is
// parallel.
func Make(ctx context.Context, module string, platforms []v1.Platform, stamp checkout.Stamp) (Build, error) {
	toolchain, err := program.Toolchain(ctx, module)
	if err != nil {
		return Build{}, err
	}
	programs, err := program.List(ctx, module)
	if err != nil {
		return Build{}, err
	}
	roots, err := layerOf(authorities())
	if err != nil {
		return Build{}, err
	}
	made := Build{Toolchain: toolchain, Stamp: stamp}
	for _, one := range programs {
		set := Set{Program: one.Name(), Version: stamp.Version}
		for _, platform := range platforms {
			binary, err := one.Build(ctx, module, platform, stamp)
			if err != nil {
				return Build{}, err
			}
			image, err := imageOf(contents{one, platform, binary, stamp}, roots)
			if err != nil {
				return Build{}, fmt.Errorf("image of %s for %s: %w", one.Name(), platform, err)
			}
			set.Images = append(set.Images, image)
		}
		if set.Index, err = indexOf(set.Images, labels(one, stamp)); err != nil {
			return Build{}, fmt.Errorf("index of %s: %w", one.Name(), err)
		}
		made.Sets = append(made.Sets, set)
	}
	return made, nil
}

// contents are what an image is made of.
type contents struct {
	program  program.Program
	platform v1.Platform
	binary   []byte
	stamp    checkout.Stamp
}

func imageOf(from contents, roots v1.Layer) (Image, error) {
	layer, err := layerOf(archive.File{Name: from.program.Name(), Data: from.binary, Executable: true})
	if err != nil {
		return Image{}, err
	}
	image, err := mutate.ConfigFile(base(), config(from))
	if err != nil {
		return Image{}, err
	}
	created := v1.Time{Time: from.stamp.Date}
	image, err = mutate.Append(image,
		mutate.Addendum{Layer: roots, MediaType: types.OCILayer, History: v1.History{Created: created, CreatedBy: "authorities"}},
		mutate.Addendum{Layer: layer, MediaType: types.OCILayer, History: v1.History{Created: created, CreatedBy: "program"}})
	if err != nil {
		return Image{}, err
	}
	image, ok := mutate.Annotations(image, labels(from.program, from.stamp)).(v1.Image)
	if !ok {
		return Image{}, fmt.Errorf("annotated, it is no image any more")
	}
	list, err := listOf(from, image)
	return Image{Platform: from.platform, Image: image, SBOM: list}, err
}

func base() v1.Image {
	return mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
}

// config has an entrypoint by its path, and no shell to find it by; charts give the arguments.
func config(from contents) *v1.ConfigFile {
	return &v1.ConfigFile{
		Created: v1.Time{Time: from.stamp.Date}, OS: from.platform.OS, Architecture: from.platform.Architecture, Variant: from.platform.Variant,
		RootFS: v1.RootFS{Type: "layers"},
		Config: v1.Config{
			User: User, WorkingDir: "/", Entrypoint: []string{"/" + from.program.Name()},
			Labels: labels(from.program, from.stamp),
		},
	}
}

// labels are OCI's predefined ones.
func labels(of program.Program, stamp checkout.Stamp) map[string]string {
	const prefix = "org.opencontainers.image."
	return map[string]string{
		prefix + "title": of.Name(), prefix + "description": "Program " + of.Name() + " of " + of.Module,
		prefix + "version": stamp.Version, prefix + "revision": stamp.Commit, prefix + "created": stamp.RFC3339(),
		prefix + "source": "https://" + of.Module, prefix + "url": "https://" + of.Module, prefix + "licenses": "Apache-2.0",
	}
}

// listOf is the list of what is in an image.
func listOf(from contents, image v1.Image) (v1.Image, error) {
	build, err := buildinfo.Read(bytes.NewReader(from.binary))
	if err != nil {
		return nil, fmt.Errorf("reading what the program is made of: %w", err)
	}
	roots, err := authoritiesComponent()
	if err != nil {
		return nil, err
	}
	document, err := sbom.Document(sbom.Subject{
		Name: from.program.Name(), Platform: from.platform.String(), Binary: from.binary, Build: build,
		Extra: []sbom.Component{roots}, Stamp: from.stamp,
	})
	if err != nil {
		return nil, err
	}
	subject, err := partial.Descriptor(image)
	if err != nil {
		return nil, fmt.Errorf("describing the image: %w", err)
	}
	return artifactOf(*subject, document, sbom.MediaType, map[string]string{"org.opencontainers.image.created": from.stamp.RFC3339()})
}

func indexOf(images []Image, annotations map[string]string) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, image := range images {
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image.Image, Descriptor: v1.Descriptor{Platform: &image.Platform},
		})
	}
	annotated, ok := mutate.Annotations(index, annotations).(v1.ImageIndex)
	if !ok {
		return nil, fmt.Errorf("annotated, it is no index any more")
	}
	return annotated, nil
}
