package oci

import (
	"errors"
	"fmt"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Platforms reads a comma-separated list, such as linux/amd64,linux/arm64.
func Platforms(list string) ([]v1.Platform, error) {
	var platforms []v1.Platform
	for part := range strings.SplitSeq(list, ",") {
		platform, err := v1.ParsePlatform(strings.TrimSpace(part))
		if err != nil {
			return nil, fmt.Errorf("platform %q: %w", part, err)
		}
		if platform.OS != "linux" || platform.Architecture == "" || platform.Variant != "" {
			return nil, errors.New("platforms are linux/amd64, linux/arm64 and the like")
		}
		platforms = append(platforms, *platform)
	}
	return platforms, nil
}
