package manager

import (
	"fmt"
	"io"

	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/trellis-addons/trellis/pkg/base/buildinfo"
)

func init() { metrics.Registry.MustRegister(buildinfo.Read().Metric()) }

// PrintVersion writes the program's build if --version is set, and says whether it did: the program then has nothing
// else to do.
func (f *Flags) PrintVersion(writer io.Writer, program string) bool {
	if f.version {
		fmt.Fprintln(writer, program, buildinfo.Read())
	}
	return f.version
}
