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

	"github.com/trellis-addons/trellis/pkg/base/buildinfo"
	"github.com/trellis-addons/trellis/pkg/base/tracing"
	"github.com/trellis-addons/trellis/pkg/clusters/remote"
)

// tracingFlags configure where traces are sent, if anywhere.
type tracingFlags struct {
	endpoint, authorities string
	ratio                 float64
	insecure              bool
}

// defaultRatio shows each kind of reconciliation within minutes on a seed of some size.
const defaultRatio = 0.1

func (t *tracingFlags) register(set *flag.FlagSet) {
	set.StringVar(&t.endpoint, "tracing-endpoint", "",
		"URL of a collector that accepts traces by OTLP over HTTP, such as https://collector.example.com:4318; "+
			"empty: OTEL_EXPORTER_OTLP_ENDPOINT of the environment, or no traces")
	set.Float64Var(&t.ratio, "tracing-sampling-ratio", defaultRatio,
		"the fraction of reconciliations and fetches that is traced, from 0 to 1; OTEL_TRACES_SAMPLER of the environment overrides the default")
	set.BoolVar(&t.insecure, "tracing-insecure", false, "send traces over plain http to a collector that is not on loopback")
	set.StringVar(&t.authorities, "tracing-ca-file", "",
		"PEM file with certificates that verify the collector, instead of the system's; empty: OTEL_EXPORTER_OTLP_CERTIFICATE of the environment")
}

// given says whether a flag was set.
func given(set *flag.FlagSet, name string) (isGiven bool) {
	set.Visit(func(one *flag.Flag) { isGiven = isGiven || one.Name == name })
	return isGiven
}

// tracer makes the Tracer of a program, or none if traces are off.
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

// trace gives the Tracer to a manager's runnables, and traces calls to its API server. Without a Tracer it changes
// nothing.
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
