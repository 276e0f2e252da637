package loop

import (
	"context"
	"path"
	"reflect"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/trellis-addons/trellis/pkg/base/tracing"
)

// Step is one step of a reconciliation over facts F. Run returns nil to continue with the next step.
type Step[F any] struct {
	// Name is the step's name in logs and metrics, and that of its file.
	Name string
	Run  func(ctx context.Context, facts *F) *Outcome
}

// durations of steps. Both label values are constants of the code.
var durations = prometheus.NewHistogramVec(prometheus.HistogramOpts{
	Name:    "trellis_step_seconds",
	Help:    "Duration of the steps of controllers.",
	Buckets: []float64{0.001, 0.01, 0.1, 1, 10},
}, []string{"controller", "step"})

func init() { metrics.Registry.MustRegister(durations) }

// known are the members of durations by their labels: the vector hashes both labels for each observation, which a
// reconciliation of 25 steps would do 25 times.
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

// Run executes the steps in order until one ends the reconciliation; after the last step the outcome is Done. It adds
// the step's name to its log lines, measures its time, for the controller that the package of the facts is named
// after, and traces it.
func Run[F any](ctx context.Context, steps []Step[F], facts *F) *Outcome {
	controller, logger := path.Base(reflect.TypeFor[F]().PkgPath()), log.FromContext(ctx)
	for _, step := range steps {
		begun, named := time.Now(), logger.WithValues("step", step.Name)
		within, span := tracing.Begin(ctx, tracing.Step, step.Name)
		outcome := step.Run(log.IntoContext(within, named), facts)
		endSpan(span, outcome)
		duration(controller, step.Name).Observe(time.Since(begun).Seconds())
		if outcome != nil {
			named.V(1).Info("a step ended the reconciliation", "outcome", outcome.Kind)
			return outcome
		}
	}
	return &Outcome{Kind: Done}
}
