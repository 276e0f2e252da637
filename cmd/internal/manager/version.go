package manager

import (
	"fmt"
	"io"

	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/trellis-addons/trellis/pkg/buildinfo"
)

func init() { metrics.Registry.MustRegister(buildinfo.Read().Metric()) }

// TellVersion writes which build the program is, where --version asks for it, and says whether it
// did: the program has nothing else to do then.
func (f *Flags) TellVersion(writer io.Writer, program string) bool {
	if f.version {
		fmt.Fprintln(writer, program, buildinfo.Read())
	}
	return f.version
}
