package manager

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/trellis-addons/trellis/pkg/buildinfo"
	"github.com/trellis-addons/trellis/pkg/remote"
	"github.com/trellis-addons/trellis/pkg/tracing"
)

// tracingFlags say where traces go, if anywhere.
type tracingFlags struct {
	endpoint, authorities string
	ratio                 float64
	insecure              bool
}

// defaultRatio shows each kind of pass within minutes on a seed of some size.
const defaultRatio = 0.1

func (t *tracingFlags) register(set *flag.FlagSet) {
	set.StringVar(&t.endpoint, "tracing-endpoint", "",
		"URL of a collector that takes traces by OTLP over HTTP, such as https://collector.example.com:4318; "+
			"empty: OTEL_EXPORTER_OTLP_ENDPOINT of the environment, or no traces")
	set.Float64Var(&t.ratio, "tracing-sampling-ratio", defaultRatio,
		"the part of passes and fetches that is traced, from 0 to 1; OTEL_TRACES_SAMPLER of the environment goes before the default")
	set.BoolVar(&t.insecure, "tracing-insecure", false, "let traces go over plain http to a collector that is not on loopback")
	set.StringVar(&t.authorities, "tracing-ca-file", "",
		"PEM certificates to trust of a collector, instead of the system's; empty: OTEL_EXPORTER_OTLP_CERTIFICATE of the environment")
}

// given says whether the flag was.
func given(set *flag.FlagSet, name string) (isGiven bool) {
	set.Visit(func(one *flag.Flag) { isGiven = isGiven || one.Name == name })
	return isGiven
}

// tracer makes the Tracer of a program, or none where nobody asks for traces.
func (t *tracingFlags) tracer(set *flag.FlagSet, program string, log logr.Logger) (*tracing.Tracer, error) {
	settings := otel{get: os.Getenv, flags: *t, hasRatio: given(set, "tracing-sampling-ratio")}
	build := buildinfo.Read()
	options, isOn, err := settings.options(program, build.Version)
	if err != nil || !isOn {
		return nil, err
	}
	options.Log, options.Metrics = log.WithName("tracing"), tracing.NewMetrics(metrics.Registry)
	log.Info("traces are sent", "host", options.Endpoint.Host, "ratio", options.Ratio)
	return tracing.New(options), nil
}

// trace has a manager's runnables know the Tracer, and calls to its API server traced. Without a
// Tracer nothing is put in between.
func trace(tracer *tracing.Tracer, config *rest.Config, options *manager.Options) {
	if tracer == nil {
		return
	}
	config.Wrap(remote.Traced(config.Host))
	options.BaseContext = func() context.Context { return tracer.Into(context.Background()) }
}

func runTracer(tracer *tracing.Tracer, made manager.Manager) error {
	if tracer == nil {
		return nil
	}
	if err := made.Add(tracer); err != nil {
		return fmt.Errorf("adding the tracer: %w", err)
	}
	return nil
}
