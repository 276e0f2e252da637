package apply_test

import (
	"testing"

	"github.com/trellis-addons/trellis/test/lab"
)

// TestMain starts one real control plane for all tests of the package.
func TestMain(m *testing.M) { lab.Main(m) }
