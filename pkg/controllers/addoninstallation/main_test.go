package addoninstallation_test

import (
	"flag"
	"os"
	"runtime"
	"testing"

	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/rendering"
)

// spinVariable makes a process of the test binary use a processor harmlessly, until its parent ends it.
const spinVariable = "TRELLIS_TEST_SPIN"

func TestMain(m *testing.M) {
	if os.Getenv(spinVariable) != "" {
		for turns := 0; ; turns++ {
			runtime.KeepAlive(turns)
		}
	}
	rendering.Serve()
	sideBySide()
	fleet.Main(m, fleet.ClusterOptions{Name: "both", Controllers: true}, fleet.ClusterOptions{Name: "elsewhere"})
}

// sideBySide makes six tests run at a time, unless -parallel sets another number: tests mostly wait, regardless of the
// number of processors.
func sideBySide() {
	flag.Parse()
	isSet := false
	flag.Visit(func(one *flag.Flag) { isSet = isSet || one.Name == "test.parallel" })
	if isSet {
		return
	}
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
}
