package output

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/trellis-addons/trellis/hack/images/oci"
)

// Registry is where images are pushed to.
type Registry struct {
	// Path is the host, and the path below which each program has its repository.
	Path string
	// Insecure allows plain http, for labs.
	Insecure bool
}

// Check refuses a path that no image can be pushed below. An empty one is nowhere, and no mistake.
// What it takes may still not exist.
func (r Registry) Check() error {
	if r.Path == "" {
		return nil
	}
	wrong := fmt.Sprintf("PUSH (flag -push) is %q, which is no registry's host and path, such as registry.example.com/trellis", r.Path)
	if scheme, _, found := strings.Cut(r.Path, "://"); found {
		return fmt.Errorf("%s: leave out %q", wrong, scheme+"://")
	}
	// The package that pushes takes empty parts, and a host without a port after its colon.
	if host, _, _ := strings.Cut(r.Path, "/"); path.Clean(r.Path) != r.Path || strings.HasSuffix(host, ":") {
		return fmt.Errorf("%s: a part of it is empty", wrong)
	}
	if _, err := name.NewRepository(r.Path+"/program", name.StrictValidation); err != nil {
		return fmt.Errorf("%s: %w", wrong, err)
	}
	return nil
}

// Push writes a set to its repository: images, their lists, and the index under its version at
// last, so that whoever finds the tag finds all of it. Credentials are those of docker's config
// file. It gives the reference of the index, with tag and digest.
func (r Registry) Push(ctx context.Context, set oci.Set) (string, error) {
	var options []name.Option
	if r.Insecure {
		options = append(options, name.Insecure)
	}
	tag, err := name.NewTag(r.Path+"/"+set.Program+":"+set.Version, options...)
	if err != nil {
		return "", fmt.Errorf("naming the image: %w", err)
	}
	pusher, err := remote.NewPusher(remote.WithAuthFromKeychain(authn.DefaultKeychain))
	if err != nil {
		return "", fmt.Errorf("preparing to push: %w", err)
	}
	for _, image := range set.Images {
		for _, one := range []v1.Image{image.Image, image.SBOM} {
			digest, err := one.Digest()
			if err != nil {
				return "", fmt.Errorf("making a digest: %w", err)
			}
			if err := pusher.Push(ctx, tag.Digest(digest.String()), one); err != nil {
				return "", fmt.Errorf("pushing to %s: %w", tag.Repository, err)
			}
		}
	}
	if err := pusher.Push(ctx, tag, set.Index); err != nil {
		return "", fmt.Errorf("pushing %s: %w", tag, err)
	}
	digest, err := set.Index.Digest()
	if err != nil {
		return "", fmt.Errorf("making the digest of the index: %w", err)
	}
	return tag.String() + "@" + digest.String(), nil
}
