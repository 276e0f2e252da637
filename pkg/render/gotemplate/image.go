package gotemplate

import (
	"fmt"

	"github.com/trellis-addons/trellis/pkg/render/images"
)

// image writes a reference out in full, and puts another registry in place of its own where one is set. Path, tag and
// digest stay.
func image(text, registry string) (string, error) {
	reference, ok := images.Parse(text)
	if !ok {
		return "", fmt.Errorf("an image reference that is none")
	}
	if registry != "" {
		reference.Domain = registry
	}
	return reference.String(), nil
}
