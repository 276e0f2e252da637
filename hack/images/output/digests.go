package output

import (
	"fmt"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/trellis-addons/trellis/hack/images/oci"
)

// digest of what belongs to a program.
type digest struct {
	program string
	// of is "index", or a platform, which "sbom" may follow.
	of     string
	digest v1.Hash
}

// digestsOf are those of sets: the index, and each platform's image and list.
func digestsOf(sets []oci.Set) ([]digest, error) {
	var found []digest
	for _, set := range sets {
		add := func(of string, from interface{ Digest() (v1.Hash, error) }) error {
			hash, err := from.Digest()
			if err != nil {
				return fmt.Errorf("making the digest of %s, %s: %w", set.Program, of, err)
			}
			found = append(found, digest{set.Program, of, hash})
			return nil
		}
		if err := add("index", set.Index); err != nil {
			return nil, err
		}
		for _, image := range set.Images {
			if err := add(image.Platform.String(), image.Image); err != nil {
				return nil, err
			}
			if err := add(image.Platform.String()+" sbom", image.SBOM); err != nil {
				return nil, err
			}
		}
	}
	return found, nil
}

// Lines are the digests of a build as text, one a line, below the release of Go that they hold for.
func Lines(build oci.Build) (string, error) {
	digests, err := digestsOf(build.Sets)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "# made by %s\n", build.Toolchain)
	for _, one := range digests {
		fmt.Fprintf(&text, "%s  %s %s\n", one.digest, one.program, one.of)
	}
	return text.String(), nil
}
