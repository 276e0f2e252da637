package main

import (
	"flag"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/trellis-addons/trellis/cmd/wiring/renderers"
	"github.com/trellis-addons/trellis/pkg/install/rendering"
	"github.com/trellis-addons/trellis/pkg/render/child"
	"github.com/trellis-addons/trellis/pkg/render/kept"
)

// renderFlags are the flags of rendering.
type renderFlags struct {
	children     int
	memory, keep resource.QuantityValue
	cpu, timeout time.Duration
}

// leastMemory is what a renderer needs for itself and a small chart, in bytes.
const leastMemory = 64 << 20

func (r *renderFlags) register(set *flag.FlagSet) {
	r.memory.Quantity = *resource.NewQuantity(child.DefaultMemory, resource.BinarySI)
	r.keep.Quantity = *resource.NewQuantity(kept.DefaultBytes, resource.BinarySI)
	set.IntVar(&r.children, "render-children", child.DefaultChildren,
		"the number of concurrent renderings, each in a separate process; one more process waits for work")
	set.Var(&r.memory, "render-memory", "the memory that a renderer may allocate before it is killed")
	set.DurationVar(&r.cpu, "render-cpu", child.DefaultCPU, "the CPU time of one rendering, after which its process is killed")
	set.DurationVar(&r.timeout, "render-timeout", child.DefaultTimeout, "the time of one rendering, after which its process is killed")
	set.Var(&r.keep, "render-keep", "memory for cached renderings, so that equal inputs are rendered once")
}

// total is the memory of all renderers together, with the one that waits for work, in bytes.
func (r *renderFlags) total() int64 { return int64(r.children+1) * r.memory.Value() }

func (r *renderFlags) check() error {
	if r.children < 1 || r.memory.Value() < leastMemory || r.cpu <= 0 || r.timeout <= 0 || r.keep.Value() < 0 {
		return fmt.Errorf("flags --render-…: set at least one process, %d MiB of memory, and times above zero", leastMemory>>20)
	}
	return nil
}

// newRenders keeps renderings and renders new ones in children.
func newRenders(made manager.Manager, options *renderFlags) (*kept.Renders, error) {
	if err := options.check(); err != nil {
		return nil, err
	}
	pool := child.New(child.Options{
		Children: options.children, Memory: options.memory.Value(), CPU: options.cpu, Timeout: options.timeout,
		Log: made.GetLogger().WithName("render"), Metrics: child.NewMetrics(metrics.Registry),
	})
	renders := kept.New(kept.Options{
		Methods: renderers.In(pool), Values: pool, Bytes: int(options.keep.Value()), Metrics: kept.NewMetrics(metrics.Registry),
	})
	return renders, made.Add(pool)
}

// newTrial renders for checks of sources, within half of the memory of a renderer. It uses memory of the renderer
// that waits for work, of which the total has all: that renderer is ended if it keeps more than the other half.
func newTrial(made manager.Manager, options *renderFlags) (*rendering.Trial, error) {
	trial, pool := renderers.Trial(child.Options{
		Memory: max(leastMemory, options.memory.Value()/2), CPU: options.cpu, Timeout: options.timeout, Log: made.GetLogger().WithName("render"),
	})
	return trial, made.Add(pool)
}
