package output

import (
	"fmt"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/trellis-addons/trellis/hack/images/oci"
)

// Digest of what belongs to a program.
type Digest struct {
	Program string
	// Of is "index", or a platform, which "sbom" may follow.
	Of     string
	Digest v1.Hash
}

// Digests are those of sets: the index, and each platform's image and list.
func Digests(sets []oci.Set) ([]Digest, error) {
	var found []Digest
	for _, set := range sets {
		add := func(of string, from interface{ Digest() (v1.Hash, error) }) error {
			digest, err := from.Digest()
			if err != nil {
				return fmt.Errorf("making the digest of %s, %s: %w", set.Program, of, err)
			}
			found = append(found, Digest{set.Program, of, digest})
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

// Lines are digests as text, one a line.
func Lines(digests []Digest) string {
	var text strings.Builder
	for _, one := range digests {
		fmt.Fprintf(&text, "%s  %s %s\n", one.Digest, one.Program, one.Of)
	}
	return text.String()
}
