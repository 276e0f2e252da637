package main

import (
	"flag"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/render/chart"
	"github.com/trellis-addons/trellis/pkg/render/child"
	"github.com/trellis-addons/trellis/pkg/render/gotemplate"
	"github.com/trellis-addons/trellis/pkg/render/kept"
)

// rendering are the flags of rendering.
type rendering struct {
	children     int
	memory, keep resource.QuantityValue
	cpu, timeout time.Duration
}

// leastMemory is what a renderer needs for itself and a small chart.
const leastMemory = 64 << 20

func (r *rendering) register(set *flag.FlagSet) {
	r.memory.Quantity = *resource.NewQuantity(child.DefaultMemory, resource.BinarySI)
	r.keep.Quantity = *resource.NewQuantity(kept.DefaultBytes, resource.BinarySI)
	set.IntVar(&r.children, "render-children", child.DefaultChildren,
		"how many add-ons are rendered at a time, each in a process of its own; one more process waits for work")
	set.Var(&r.memory, "render-memory", "the memory that a renderer may allocate before it is killed")
	set.DurationVar(&r.cpu, "render-cpu", child.DefaultCPU, "the processor time of one rendering, after which its process is killed")
	set.DurationVar(&r.timeout, "render-timeout", child.DefaultTimeout, "the time of one rendering, after which its process is killed")
	set.Var(&r.keep, "render-keep", "how much of what was rendered is kept in memory, so that equal inputs are rendered once")
}

// total is what all renderers may take together, with the one that waits for work.
func (r *rendering) total() int64 { return int64(r.children+1) * r.memory.Value() }

func (r *rendering) check() error {
	if r.children < 1 || r.memory.Value() < leastMemory || r.cpu <= 0 || r.timeout <= 0 || r.keep.Value() < 0 {
		return fmt.Errorf("flags --render-…: at least one child, %d MiB of memory, and some time", leastMemory>>20)
	}
	return nil
}

// renderers are what a child can do.
func renderers() child.Renderers {
	return child.Renderers{
		Methods: child.Methods{
			string(kubermaticv1.MethodGoTemplate): gotemplate.New(), string(kubermaticv1.MethodHelm): chart.New(),
		},
		Values: gotemplate.New(),
	}
}

// newRenders keeps renderings and has new ones made in children.
func newRenders(made manager.Manager, options *rendering) (*kept.Renders, error) {
	if err := options.check(); err != nil {
		return nil, err
	}
	pool := child.New(child.Options{
		Children: options.children, Memory: options.memory.Value(), CPU: options.cpu, Timeout: options.timeout,
		Log: made.GetLogger().WithName("render"), Metrics: child.NewMetrics(metrics.Registry),
	})
	renders := kept.New(kept.Options{
		Methods: map[string]render.Renderer{
			string(kubermaticv1.MethodGoTemplate): pool.Renderer(string(kubermaticv1.MethodGoTemplate), gotemplate.Wants),
			string(kubermaticv1.MethodHelm):       pool.Renderer(string(kubermaticv1.MethodHelm), child.AllFiles),
		},
		Values: pool, Bytes: int(options.keep.Value()), Metrics: kept.NewMetrics(metrics.Registry),
	})
	return renders, made.Add(pool)
}
