package remote_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-addons/trellis/pkg/clusters/remote"
)

func TestIsUID(t *testing.T) {
	for uid, want := range map[string]bool{
		"0f3c9a52-7d0b-4c36-9c7b-0a1b2c3d4e5f": true, "u1": true, "": false, "-a": false, "a-": false, "a b": false, "a\n": false, "ä": false,
		strings.Repeat("a", 36): true, strings.Repeat("a", 37): false,
	} {
		if got := remote.IsUID(types.UID(uid)); got != want {
			t.Errorf("%q: %t", uid, got)
		}
	}
}
