// Package charts has the CRDs of the charts inside the programs: each knows the kinds that it was
// built with.
package charts

import (
	"embed"
	"fmt"
	"io/fs"
)

//go:embed trellis-master/crds trellis-seed/crds
var files embed.FS

// CRDs are the files of a chart's folder crds.
func CRDs(chart string) (fs.FS, error) {
	folder, err := fs.Sub(files, chart+"/crds")
	if err != nil {
		return nil, fmt.Errorf("chart %q: %w", chart, err)
	}
	return folder, nil
}
