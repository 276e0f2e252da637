// Package renderers lists the methods that render add-ons, for programs and tools that render in children. Add
// further methods here.
package renderers

import (
	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/install/rendering"
	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/render/chart"
	"github.com/trellis-addons/trellis/pkg/render/child"
	"github.com/trellis-addons/trellis/pkg/render/gotemplate"
)

// All are the renderers that run inside a child, one for each method, for child.Serve.
func All() child.Renderers {
	return child.Renderers{
		Methods: child.Methods{
			string(kubermaticv1.MethodGoTemplate): gotemplate.New(), string(kubermaticv1.MethodHelm): chart.New(),
		},
		Values: gotemplate.New(),
	}
}

// In are the renderers that a manager calls, by method: each renders in a child of the pool.
func In(pool *child.Pool) map[string]render.Renderer {
	return map[string]render.Renderer{
		string(kubermaticv1.MethodGoTemplate): pool.Renderer(string(kubermaticv1.MethodGoTemplate), gotemplate.Wants),
		string(kubermaticv1.MethodHelm):       pool.Renderer(string(kubermaticv1.MethodHelm), child.AllFiles),
	}
}

// Trial renders for checks, in one child at a time that ends after each rendering. Close of the pool ends it. The
// options limit a rendering.
func Trial(options child.Options) (*rendering.Trial, *child.Pool) {
	options.Children, options.Alone, options.Renders = 1, true, 1
	pool := child.New(options)
	return &rendering.Trial{Methods: In(pool), Values: pool}, pool
}
