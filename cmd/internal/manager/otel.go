package manager

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/trellis-addons/trellis/pkg/base/tracing"
)

// otel reads the settings of traces from flags and the environment. It supports those variables of OpenTelemetry that
// have an equivalent here; a flag takes precedence over its variable.
type otel struct {
	get      func(string) string
	flags    tracingFlags
	hasRatio bool
}

// variable reads an exporter's variable, which may be for traces alone; from is its full name.
func (o otel) variable(name string) (from, text string) {
	const own, base = "OTEL_EXPORTER_OTLP_TRACES_", "OTEL_EXPORTER_OTLP_"
	if text := o.get(own + name); text != "" {
		return own + name, text
	}
	return base + name, o.get(base + name)
}

// options returns a program's options of a Tracer, if traces are on.
func (o otel) options(program, version string) (options tracing.Options, isOn bool, err error) {
	if strings.EqualFold(o.get("OTEL_SDK_DISABLED"), "true") || o.get("OTEL_TRACES_EXPORTER") == "none" && o.flags.endpoint == "" {
		return options, false, nil
	}
	options.Endpoint, err = o.endpoint()
	if err != nil || options.Endpoint == nil {
		return options, false, err
	}
	if from, protocol := o.variable("PROTOCOL"); protocol != "" && protocol != "http/protobuf" && o.flags.endpoint == "" {
		return options, false, fmt.Errorf("variable %s is %q: only http/protobuf is supported", from, protocol)
	}
	if options.Ratio, err = o.ratio(); err != nil {
		return options, false, err
	}
	if options.Header, err = o.header(); err != nil {
		return options, false, err
	}
	if options.Resource, err = o.resource(program, version); err != nil {
		return options, false, err
	}
	options.Client, err = o.client()
	options.Version = version
	return options, err == nil, err
}

// tracesPath is a collector's default path for traces.
const tracesPath = "/v1/traces"

// named returns the configured target of traces, its source, and whether it is a base for all signals.
func (o otel) named() (from, text string, isBase bool) {
	if o.flags.endpoint != "" {
		return "flag --tracing-endpoint", o.flags.endpoint, false
	}
	from, text = o.variable("ENDPOINT")
	return "variable " + from, text, from == "OTEL_EXPORTER_OTLP_ENDPOINT"
}

// endpoint is nil if traces are not sent.
func (o otel) endpoint() (*url.URL, error) {
	from, text, isBase := o.named()
	if text == "" {
		return nil, nil
	}
	at, err := url.Parse(text)
	if err != nil || at.Host == "" || at.Scheme != "https" && at.Scheme != "http" {
		return nil, fmt.Errorf("%s is not a URL such as https://collector.example.com:4318", from)
	}
	if at.User != nil || at.RawQuery != "" || at.Fragment != "" {
		return nil, fmt.Errorf("%s has a user or a query: put credentials into OTEL_EXPORTER_OTLP_HEADERS", from)
	}
	if at.Scheme == "http" && !o.flags.insecure && !isLoopback(at.Hostname()) {
		return nil, fmt.Errorf("%s is plain http to %q: use https, or set --tracing-insecure", from, at.Hostname())
	}
	if path := strings.TrimSuffix(at.Path, "/"); path == "" || isBase {
		at.Path = path + tracesPath
	}
	return at, nil
}

func isLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}

// ratio is the flag's, if it was given, or the one of the samplers that use a ratio.
func (o otel) ratio() (float64, error) {
	ratio := o.flags.ratio
	if sampler := strings.TrimPrefix(o.get("OTEL_TRACES_SAMPLER"), "parentbased_"); !o.hasRatio && sampler != "" {
		switch sampler {
		case "always_on":
			return 1, nil
		case "always_off":
			return 0, nil
		case "traceidratio":
		default:
			return 0, fmt.Errorf("variable OTEL_TRACES_SAMPLER is %q: use always_on, always_off or traceidratio", sampler)
		}
		ratio = 1
		if text := o.get("OTEL_TRACES_SAMPLER_ARG"); text != "" {
			read, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return 0, fmt.Errorf("variable OTEL_TRACES_SAMPLER_ARG is %q, which is not a number", text)
			}
			ratio = read
		}
	}
	if !(ratio >= 0 && ratio <= 1) { // NaN is neither
		return 0, fmt.Errorf("the fraction of reconciliations that is traced is %v (--tracing-sampling-ratio): use a number from 0 to 1", ratio)
	}
	return ratio, nil
}

// header is sent with traces. It often authenticates us, so no error repeats it.
func (o otel) header() (http.Header, error) {
	from, text := o.variable("HEADERS")
	pairs, err := pairs(text)
	if err != nil {
		return nil, fmt.Errorf("variable %s: %w", from, err)
	}
	header := http.Header{}
	for name, value := range pairs {
		if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return nil, fmt.Errorf("variable %s has a header whose name or value is not valid", from)
		}
		header.Set(name, value)
	}
	return header, nil
}

// resource identifies the sender of traces.
func (o otel) resource(program, version string) (map[string]string, error) {
	resource, err := pairs(o.get("OTEL_RESOURCE_ATTRIBUTES"))
	if err != nil {
		return nil, fmt.Errorf("variable OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	if resource["service.name"] == "" {
		resource["service.name"] = program
	}
	if name := o.get("OTEL_SERVICE_NAME"); name != "" {
		resource["service.name"] = name
	}
	if resource["service.version"] == "" {
		resource["service.version"] = version
	}
	if host, err := os.Hostname(); err == nil && resource["service.instance.id"] == "" {
		resource["service.instance.id"] = host // the pod's name
	}
	return resource, nil
}

// pairs reads key=value,key=value with values as in URLs.
func pairs(text string) (map[string]string, error) {
	read := map[string]string{}
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		key, value, found := strings.Cut(part, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if key = strings.TrimSpace(key); !found || key == "" || err != nil {
			return nil, errors.New("it has to be key=value, comma-separated, with values as in URLs")
		}
		read[key] = value
	}
	return read, nil
}

func (o otel) client() (*http.Client, error) {
	timeout := tracing.DefaultTimeout
	if from, text := o.variable("TIMEOUT"); text != "" {
		milliseconds, err := strconv.ParseInt(text, 10, 32)
		if err != nil || milliseconds <= 0 {
			return nil, fmt.Errorf("variable %s is %q: it has to be a number of milliseconds", from, text)
		}
		timeout = min(time.Duration(milliseconds)*time.Millisecond, time.Minute)
	}
	security := &tls.Config{MinVersion: tls.VersionTLS12}
	from, file := "flag --tracing-ca-file", o.flags.authorities
	if file == "" {
		from, file = o.variable("CERTIFICATE")
		from = "variable " + from
	}
	if file != "" {
		pem, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading the collector's CA certificates (%s): %w", from, err)
		}
		security.RootCAs = x509.NewCertPool()
		if !security.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("file %q has no PEM certificates (%s)", file, from)
		}
	}
	if err := o.clientCertificate(security); err != nil {
		return nil, err
	}
	return tracing.NewClient(security, timeout), nil
}

// clientCertificate authenticates us, if the environment has a certificate.
func (o otel) clientCertificate(security *tls.Config) error {
	from, certificate := o.variable("CLIENT_CERTIFICATE")
	keyFrom, key := o.variable("CLIENT_KEY")
	if certificate == "" && key == "" {
		return nil
	}
	if _, err := tls.LoadX509KeyPair(certificate, key); err != nil {
		return fmt.Errorf("reading the client certificate of variables %s and %s: %w", from, keyFrom, err)
	}
	security.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		read, err := tls.LoadX509KeyPair(certificate, key) // again, since certificates are renewed
		return &read, err
	}
	return nil
}
