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

	"github.com/trellis-addons/trellis/pkg/tracing"
)

// Step is one step of a pass over facts F. Run returns nil to continue with the next step.
type Step[F any] struct {
	// Name is the step's in logs and metrics, and the name of its file.
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

// known are the members of durations by their labels: the vector hashes both labels each time, and
// a pass of 25 steps would have 25 times two hashed.
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

// Run makes the steps in order until one ends the pass; the end of the list is Done. It gives what
// a step logs the step's name, measures its time, for the controller that the package of the facts
// is called after, and traces it.
func Run[F any](ctx context.Context, steps []Step[F], facts *F) Outcome {
	controller, logger := path.Base(reflect.TypeFor[F]().PkgPath()), log.FromContext(ctx)
	for _, step := range steps {
		begun, named := time.Now(), logger.WithValues("step", step.Name)
		within, span := tracing.Begin(ctx, tracing.Step, step.Name)
		outcome := step.Run(log.IntoContext(within, named), facts)
		endSpan(span, outcome)
		duration(controller, step.Name).Observe(time.Since(begun).Seconds())
		if outcome != nil {
			named.V(1).Info("a step ended the pass", "outcome", fmt.Sprintf("%T", outcome))
			return outcome
		}
	}
	return Done{}
}
