package loop

import (
	"context"
	"fmt"
	"path"
	"reflect"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Step is one step of a pass over facts F. Run returns nil to go on with the next step.
type Step[F any] struct {
	// Name is what logs and metrics call the step, and the file that it stands in.
	Name string
	Run  func(ctx context.Context, facts *F) Outcome
}

// durations of steps. Both labels are words of the code.
var durations = prometheus.NewHistogramVec(prometheus.HistogramOpts{
	Name:    "trellis_step_seconds",
	Help:    "Time that the steps of controllers take.",
	Buckets: []float64{0.001, 0.01, 0.1, 1, 10},
}, []string{"controller", "step"})

func init() { metrics.Registry.MustRegister(durations) }

// known are the members of durations by their labels: asking the vector for one hashes both each time, and a pass of 25 steps asks
// 25 times.
var known sync.Map

type labels struct{ controller, step string }

func duration(controller, step string) prometheus.Observer {
	key := labels{controller, step}
	if found, isKnown := known.Load(key); isKnown {
		return found.(prometheus.Observer)
	}
	made := durations.WithLabelValues(controller, step)
	known.Store(key, made)
	return made
}

// Run takes the steps in order until one ends the pass; the end of the list is Done. What a step
// logs has its name, and its time is measured, for the controller that the package of the facts is
// called after.
func Run[F any](ctx context.Context, steps []Step[F], facts *F) Outcome {
	controller, logger := path.Base(reflect.TypeFor[F]().PkgPath()), log.FromContext(ctx)
	for _, step := range steps {
		begun, named := time.Now(), logger.WithValues("step", step.Name)
		outcome := step.Run(log.IntoContext(ctx, named), facts)
		duration(controller, step.Name).Observe(time.Since(begun).Seconds())
		if outcome != nil {
			named.V(1).Info("a step ended the pass", "outcome", fmt.Sprintf("%T", outcome))
			return outcome
		}
	}
	return Done{}
}
