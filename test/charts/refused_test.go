package charts

import (
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
)

// TestWrongValuesAreRefused: red where a value is taken of which no object can be made, or which a pod only fails by once it runs, and
// where the refusal names neither the value nor what is wrong.
func TestWrongValuesAreRefused(t *testing.T) {
	both, seed, master := []string{"trellis-master", "trellis-seed"}, []string{"trellis-seed"}, []string{"trellis-master"}
	for values, test := range map[string]struct {
		charts []string
		says   string
	}{
		"debugBindAddress: ':6060'":                                  {both, "at '/debugBindAddress"},
		"debugBindAddress: 10.0.0.1:6060":                            {both, "at '/debugBindAddress"},
		"metricsBindAddress: 0.0.0.0":                                {both, "at '/metricsBindAddress"},
		"metricsBindAddress: ':http'":                                {both, "at '/metricsBindAddress"},
		"metricsBindAddress: '8085'":                                 {both, "at '/metricsBindAddress"},
		"metricsBindAddress: ':9443'":                                {both, "metricsBindAddress has port 9443"},
		"extraVolumes: [{name: store, emptyDir: {}}]":                {both, `extraVolumes has "store"`},
		"resources: {limits: {memory: abc}}":                         {both, "at '/resources/limits/memory"},
		"resources: {limits: {memory: 512Mi}}":                       {seed, "4 renderers of render.memory 384Mi"},
		"render: {children: 20}":                                     {seed, "21 renderers of render.memory 384Mi"},
		"store: {limit: 3Gi}":                                        {master, "store.limit is 3Gi and store.sizeLimit 2Gi"},
		"store: {limit: 1900Mi}":                                     {master, "the volume needs 256Mi more than"},
		"store: {limit: 5Gi}":                                        {seed, "store.limit is 5Gi and store.sizeLimit 4Gi"},
		"store: {limit: 3Gi}  # fits without the checks of sources":  {seed, "the volume needs 1280Mi more than"},
		"webhook: {certManager: {issuerRef: {kind: ClusterIssuer}}}": {both, "at '/webhook/certManager/issuerRef"},
		"image: {repository: 'example.com/x:v1'}":                    {both, "at '/image/repository"},
		"image: {repository: 'example.com/x@sha256:0'}":              {both, "at '/image/repository"},
		"image: {tag: 'bad tag'}":                                    {both, "at '/image/tag"},
		"global: {imageRegistry: 'https://example.com'}":             {both, "at '/global/imageRegistry"},
		"extraEnv: [{name: TZ, val: UTC}]":                           {both, "at '/extraEnv"},
		"workerName: A_b":                                            {both, "at '/workerName"},
		"catalogueNamespace: kubermatic":                             {both, `catalogueNamespace is "kubermatic"`},
		"standalone: {enabled: true, kkpVersion: abc}":               {master, "at '/standalone/kkpVersion"},
		"standalone: {kkpVersion: 2.31.0}":                           {master, "standalone.kkpVersion is for standalone.enabled"},
		"tracing: {endpoint: 'http://collector:4318'}":               {both, "tracing.insecure"},
		"tracing: {endpoint: 'https://user:x@collector'}":            {both, "at '/tracing/endpoint"},
		"tracing: {samplingRatio: 2}":                                {both, "at '/tracing/samplingRatio"},
		"agents: {enabled: true}":                                    {seed, "agents.enabled needs agents.hub.server"},
		"agents: {hub: {server: 'http://hub.example.com'}}":          {seed, "at '/agents/hub/server"},
		"agents: {hub: {server: 'https://user:x@hub.example.com'}}":  {seed, "at '/agents/hub/server"},
		"agents: {hub: {caConfigMap: ''}}":                           {seed, "at '/agents/hub/caConfigMap"},
		"agents: {approve: ['*']}":                                   {seed, "at '/agents/approve"},
		"agents: {approve: ['example.com/*']}":                       {seed, "at '/agents/approve"},
		"agents: {approve: [kubernetes.io/x, kubernetes.io/x]}":      {seed, "at '/agents/approve"},
		"agents: {shared: true}":                                     {seed, "shared"},
		"agents: {enabled: true, hub: {server: 'https://a'}}\nextraVolumes: [{name: hub-ca, emptyDir: {}}]": {seed, `extraVolumes has "hub-ca"`},
		"query: {url: 'http://addons.example.com'}":                                                         {seed, "at '/query/url"},
		"query: {url: 'https://a:b@c.example.com'}":                                                         {seed, "at '/query/url"},
		"misspelt: 1": {both, "misspelt"},
	} {
		given, err := chartutil.ReadValues([]byte(values))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range test.charts {
			loaded, err := Load(name)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := renderLoaded(loaded, namespace, given); err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%s with %s: %v, want a refusal with %q", name, values, err, test.says)
			}
		}
	}
}

// TestUsualValuesAreTaken: red where a value is refused that an API server takes.
func TestUsualValuesAreTaken(t *testing.T) {
	for _, values := range []string{
		"metricsBindAddress: '0'", "metricsBindAddress: '[::1]:8085'", "metricsBindAddress: 0.0.0.0:9000", "resources: {limits: {memory: 4G}}",
		"resources: {limits: {memory: 4294967296}}", "resources: {}", "image: {repository: 'registry.example.com:5000/a/b-c_d.e'}",
		"global: {imageRegistry: 'registry.example.com:5000/mirror'}", "workerName: one-2",
		"tracing: {endpoint: 'http://[::1]:4318/v1/traces', insecure: true, samplingRatio: 0}",
		"webhook: {certManager: {enabled: true, issuerRef: {group: issuers.example.com, kind: PrivateIssuer, name: x}}}",
		"networkPolicy: {enabled: true, metricsFrom: [{podSelector: {}}]}\nmetricsBindAddress: '0'",
	} {
		given, err := chartutil.ReadValues([]byte(values))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"trellis-master", "trellis-seed"} {
			if loaded, err := Load(name); err != nil {
				t.Fatal(err)
			} else if _, err := renderLoaded(loaded, namespace, given); err != nil {
				t.Errorf("%s with %s: %v", name, values, err)
			}
		}
	}
}
