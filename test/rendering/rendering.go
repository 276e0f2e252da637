// Package rendering lets tests render in children as the managers do. A test binary is its own child: its TestMain begins
// with Serve.
package rendering

import (
	"cmp"
	"os"
	"testing"
	"time"

	"github.com/trellis-addons/trellis/pkg/render/chart"
	"github.com/trellis-addons/trellis/pkg/render/child"
	"github.com/trellis-addons/trellis/pkg/render/gotemplate"
)

// Methods by which tests render, in the words of the catalogue.
const (
	GoTemplate = "go-template"
	Helm       = "helm"
)

// Renderers are those of the seed's manager.
func Renderers() child.Renderers {
	return child.Renderers{
		Methods: child.Methods{GoTemplate: gotemplate.New(), Helm: chart.New()},
		Values:  gotemplate.New(),
	}
}

// Serve makes the test binary a child if it was started as one, and otherwise does nothing.
func Serve() { child.Serve(Renderers()) }

// Main is TestMain of a package that needs nothing else.
func Main(m *testing.M) {
	Serve()
	os.Exit(m.Run())
}

// timeout is far beyond what a rendering takes where it waits for a processor most of its time.
const timeout = 10 * time.Minute

// Pool is a pool that ends with the test. Without a Timeout of the test's own, only processor time counts.
func Pool(t testing.TB, options child.Options) *child.Pool {
	t.Helper()
	options.Timeout = cmp.Or(options.Timeout, timeout)
	pool := child.New(options)
	t.Cleanup(pool.Close)
	return pool
}
