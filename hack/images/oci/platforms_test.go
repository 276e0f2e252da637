package oci

import "testing"

// Red when a platform is taken that nothing is built for in one way.
func TestPlatformsAreRead(t *testing.T) {
	for list, right := range map[string]bool{"linux/amd64": true, "linux/amd64, linux/arm64": true, "": false, "windows/amd64": false, "linux/arm/v7": false} {
		if _, err := Platforms(list); (err == nil) != right {
			t.Errorf("%q: got %v", list, err)
		}
	}
}
