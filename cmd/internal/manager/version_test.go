package manager

import (
	"bytes"
	"flag"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Red when --version tells nothing, or is told without being asked for.
func TestAProgramReportsItsVersion(t *testing.T) {
	for _, asked := range []bool{false, true} {
		flags, reported := &Flags{}, &bytes.Buffer{}
		set := flag.NewFlagSet("test", flag.ContinueOnError)
		flags.Register(set)
		if asked {
			if err := set.Parse([]string{"--version"}); err != nil {
				t.Fatal(err)
			}
		}
		if got := flags.PrintVersion(reported, "x-manager"); got != asked {
			t.Errorf("asked %t, and told %t", asked, got)
		}
		if got := strings.HasPrefix(reported.String(), "x-manager "); got != asked {
			t.Errorf("asked %t, and told %q", asked, reported)
		}
	}
}

// Red when the managers' endpoint does not serve which build runs.
func TestTheEndpointSaysWhichBuildRuns(t *testing.T) {
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "trellis_build_info" {
			return
		}
	}
	t.Error("no metric trellis_build_info")
}
