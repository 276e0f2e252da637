package manager

import (
	"flag"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/trellis-addons/trellis/pkg/base/tracing"
)

// read gives the options that arguments and an environment come to.
func read(t *testing.T, arguments []string, environment map[string]string) (tracing.Options, bool, error) {
	t.Helper()
	var flags tracingFlags
	set := flag.NewFlagSet("test", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	flags.register(set)
	if err := set.Parse(arguments); err != nil {
		t.Fatal(err)
	}
	settings := otel{get: func(name string) string { return environment[name] }, flags: flags, hasRatio: given(set, "tracing-sampling-ratio")}
	return settings.options("trellis-test", "1.2.3")
}

func TestWhereTracesGo(t *testing.T) {
	for _, c := range []struct {
		why, arguments string
		environment    map[string]string
		// endpoint is empty where there are no traces.
		endpoint string
		ratio    float64
	}{
		{"nobody asks", "", nil, "", 0},
		{"a flag", "--tracing-endpoint=https://c:4318", nil, "https://c:4318/v1/traces", 0.1},
		{"a flag with a slash", "--tracing-endpoint=https://c:4318/", nil, "https://c:4318/v1/traces", 0.1},
		{"a flag with a path", "--tracing-endpoint=https://c/otlp/traces", nil, "https://c/otlp/traces", 0.1},
		{"loopback may be plain", "--tracing-endpoint=http://127.0.0.1:4318", nil, "http://127.0.0.1:4318/v1/traces", 0.1},
		{"plain as asked for", "--tracing-endpoint=http://c:4318 --tracing-insecure", nil, "http://c:4318/v1/traces", 0.1},
		{"a ratio", "--tracing-endpoint=https://c --tracing-sampling-ratio=1", nil, "https://c/v1/traces", 1},
		{"a base of the environment", "", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "https://c:4318/base"}, "https://c:4318/base/v1/traces", 0.1},
		{"traces alone", "", map[string]string{
			"OTEL_EXPORTER_OTLP_ENDPOINT": "https://other", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "https://c/own",
		}, "https://c/own", 0.1},
		{"a flag first", "--tracing-endpoint=https://c", map[string]string{
			"OTEL_EXPORTER_OTLP_ENDPOINT": "https://other", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
		}, "https://c/v1/traces", 0.1},
		{"off for all", "--tracing-endpoint=https://c", map[string]string{"OTEL_SDK_DISABLED": "true"}, "", 0},
		{"no exporter", "", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "https://c", "OTEL_TRACES_EXPORTER": "none"}, "", 0},
		{"a sampler", "--tracing-endpoint=https://c", map[string]string{
			"OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.25",
		}, "https://c/v1/traces", 0.25},
		{"all", "--tracing-endpoint=https://c", map[string]string{"OTEL_TRACES_SAMPLER": "always_on"}, "https://c/v1/traces", 1},
		{"a flag before a sampler", "--tracing-endpoint=https://c --tracing-sampling-ratio=0.1", map[string]string{
			"OTEL_TRACES_SAMPLER": "always_on",
		}, "https://c/v1/traces", 0.1},
	} {
		options, isOn, err := read(t, strings.Fields(c.arguments), c.environment)
		if err != nil {
			t.Errorf("%s: %v", c.why, err)
			continue
		}
		endpoint := ""
		if isOn {
			endpoint = options.Endpoint.String()
		}
		if endpoint != c.endpoint || isOn && options.Ratio != c.ratio {
			t.Errorf("%s: traces go to %q, %v of them", c.why, endpoint, options.Ratio)
		}
	}
}

// What is wrong is refused in words, without what it may hold of secrets.
func TestWrongSettingsOfTracesAreRefused(t *testing.T) {
	for _, c := range []struct {
		arguments   string
		environment map[string]string
		says        string
	}{
		{"--tracing-endpoint=collector:4318", nil, "is not a URL such as"},
		{"--tracing-endpoint=ftp://c", nil, "is not a URL such as"},
		{"--tracing-endpoint=https://u:planted@c", nil, "OTEL_EXPORTER_OTLP_HEADERS"},
		{"--tracing-endpoint=https://c?token=planted", nil, "OTEL_EXPORTER_OTLP_HEADERS"},
		{"--tracing-endpoint=http://c", nil, "--tracing-insecure"},
		{"--tracing-endpoint=https://c --tracing-sampling-ratio=1.5", nil, "from 0 to 1"},
		{"--tracing-endpoint=https://c --tracing-sampling-ratio=NaN", nil, "from 0 to 1"},
		{"--tracing-endpoint=https://c --tracing-ca-file=/nowhere", nil, "--tracing-ca-file"},
		{"--tracing-endpoint=https://c --tracing-ca-file=/dev/null", nil, "no PEM"},
		{"", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "https://c", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "http/protobuf"},
		{"--tracing-endpoint=https://c", map[string]string{"OTEL_TRACES_SAMPLER": "jaeger_remote"}, "OTEL_TRACES_SAMPLER"},
		{"--tracing-endpoint=https://c", map[string]string{"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "x"}, "not a number"},
		{"--tracing-endpoint=https://c", map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "planted"}, "key=value"},
		{"--tracing-endpoint=https://c", map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "a=b\nplanted: x"}, "a header whose name"},
		{"--tracing-endpoint=https://c", map[string]string{"OTEL_EXPORTER_OTLP_TIMEOUT": "soon"}, "milliseconds"},
		{"--tracing-endpoint=https://c", map[string]string{"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE": "/nowhere"}, "OTLP_CLIENT_CERTIFICATE"},
		{"", map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "c"}, "variable OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"},
		{"", map[string]string{
			"OTEL_EXPORTER_OTLP_ENDPOINT": "https://c", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc",
		}, "variable OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"},
		{"--tracing-endpoint=https://c", map[string]string{"OTEL_EXPORTER_OTLP_TRACES_HEADERS": "planted"}, "variable OTEL_EXPORTER_OTLP_TRACES_HEADERS:"},
		{"--tracing-endpoint=https://c", map[string]string{"OTEL_EXPORTER_OTLP_TRACES_HEADERS": "a b=planted"}, "variable OTEL_EXPORTER_OTLP_TRACES_HEADERS has"},
		{"--tracing-endpoint=https://c", map[string]string{"OTEL_EXPORTER_OTLP_TRACES_TIMEOUT": "soon"}, "variable OTEL_EXPORTER_OTLP_TRACES_TIMEOUT"},
		{"--tracing-endpoint=https://c", map[string]string{"OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE": "/nowhere"}, "variable OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE"},
		{"--tracing-endpoint=https://c", map[string]string{"OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE": "/dev/null"}, "variable OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE"},
		{"--tracing-endpoint=https://c", map[string]string{
			"OTEL_EXPORTER_OTLP_TRACES_CLIENT_CERTIFICATE": "/nowhere", "OTEL_EXPORTER_OTLP_CLIENT_KEY": "/nowhere",
		}, "OTEL_EXPORTER_OTLP_TRACES_CLIENT_CERTIFICATE and OTEL_EXPORTER_OTLP_CLIENT_KEY"},
	} {
		_, isOn, err := read(t, strings.Fields(c.arguments), c.environment)
		if err == nil || isOn || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "planted") {
			t.Errorf("%s %v: %v", c.arguments, c.environment, err)
		}
	}
}

func TestHeadersAndResourceOfTraces(t *testing.T) {
	options, _, err := read(t, []string{"--tracing-endpoint=https://c"}, map[string]string{
		"OTEL_EXPORTER_OTLP_HEADERS": "Authorization=Bearer%20x, X-Scope=a=b", "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment=lab,service.instance.id=one",
		"OTEL_SERVICE_NAME": "ours",
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(http.Header{"Authorization": {"Bearer x"}, "X-Scope": {"a=b"}}, options.Header); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
	want := map[string]string{
		"service.name": "ours", "service.version": "1.2.3", "service.instance.id": "one", "deployment.environment": "lab",
	}
	if diff := cmp.Diff(want, options.Resource); diff != "" {
		t.Errorf("resource (-want +got):\n%s", diff)
	}
}

// Without traces nothing is between the manager and its API server, and its runnables' contexts are as ever.
func TestWithoutTracesNothingIsPutInBetween(t *testing.T) {
	config, options := &rest.Config{}, manager.Options{}
	trace(nil, config, &options)
	if config.WrapTransport != nil || options.BaseContext != nil {
		t.Error("something is put in between")
	}
}
