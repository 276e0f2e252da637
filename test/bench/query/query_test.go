package query

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/cmd/wiring"
	"github.com/trellis-addons/trellis/pkg/fleet/mergedcatalogue"
	"github.com/trellis-addons/trellis/pkg/serve/query"
	"github.com/trellis-addons/trellis/test/bench/bar"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/given"
	kit "github.com/trellis-addons/trellis/test/world"
)

// The size of the bar, and the bar itself.
const (
	addons         = 200
	versionsOfEach = 25
	cpuBar         = 1.5

	rounds      = 7
	requests    = 2000
	connections = 4

	place = "addon-catalogue"
)

func TestMain(m *testing.M) {
	if os.Getenv(clientVariable) != "" {
		os.Exit(runClient())
	}
	os.Exit(m.Run())
}

// counting counts the calls to the API server.
type counting struct {
	client.Client
	calls atomic.Int64
}

func (c *counting) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	c.calls.Add(1)
	return c.Client.Create(ctx, object, options...)
}

// bench is an endpoint over a real API server, and an empty handler beside it.
type bench struct {
	*testing.B
	seed     client.Client
	reviews  *counting
	endpoint *query.Server
	// empty and bytes are the URLs of a handler that answers nothing, and of one that answers what is given to it.
	empty, bytes string
	given        atomic.Pointer[[]byte]
	authority    []byte
	token        string
}

// BenchmarkAnswer holds a bar: the CPU of an answer beside that of an empty handler.
func BenchmarkAnswer(b *testing.B) {
	log.SetLogger(logr.Discard())
	made := newBench(b)
	url := "https://" + made.endpoint.Address() + "/api/v1/addons?kkpVersion=2.31.0&k8sVersion=1.36.3"
	first, cold := made.once(url, nil)
	packed, _ := made.once(url, map[string]string{"Accept-Encoding": "gzip"})
	etag := first.Header.Get("ETag")
	if versions := strings.Count(first.body, `"version":`); versions != addons*versionsOfEach {
		b.Fatalf("%d versions are listed, want %d", versions, addons*versionsOfEach)
	}
	base := load{Token: made.token, Authority: made.authority, Requests: requests, Connections: connections, Status: http.StatusOK}
	forms := []struct {
		name string
		load load
	}{
		{"empty", base.with(made.empty, 0, nil)},
		{"bytes", base.with(made.bytes, len(packed.body), nil)},
		{"gzip", base.with(url, len(packed.body), map[string]string{"Accept-Encoding": "gzip"})},
		{"304", base.with(url, 0, map[string]string{"If-None-Match": etag})},
		{"plain", base.with(url, len(first.body), nil)},
	}
	forms[3].load.Status = http.StatusNotModified
	prepared := []byte(packed.body)
	made.given.Store(&prepared)
	before := made.reviews.calls.Load()
	spent := map[string][]time.Duration{}
	for b.Loop() {
		for range rounds {
			for _, form := range forms {
				start := processorTime(b)
				send(b, form.load)
				spent[form.name] = append(spent[form.name], (processorTime(b)-start)/requests)
			}
		}
	}
	calls := made.reviews.calls.Load() - before
	b.Logf("%d versions of %d add-ons: %d bytes, %d with gzip; first answer %s of CPU", addons*versionsOfEach, addons,
		len(first.body), len(packed.body), cold.Round(100*time.Microsecond))
	ratios := map[string]float64{}
	for _, form := range forms {
		ratios[form.name] = ratioOf(spent[form.name], spent["empty"])
		b.Logf("%-5s %8s of CPU per request, %.2f x the empty handler", form.name,
			median(spent[form.name]).Round(100*time.Nanosecond), ratios[form.name])
		// What 20 KB cost on their way through TLS is not the handler's; an answer that is known already is its own.
		if form.name == "304" {
			bar.AtMost(b, form.name+"-x-empty", ratios[form.name], cpuBar)
		} else {
			bar.None(b, form.name+"-x-empty", ratios[form.name])
		}
	}
	own := ratioOf(spent["gzip"], spent["bytes"])
	b.Logf("gzip is %.2f x a handler that sends the same bytes and does nothing else", own)
	b.Logf("%d calls to the API server during %d requests of one identity", calls, rounds*requests*len(forms))
	bar.AtMost(b, "gzip-x-bytes", own, cpuBar)
	bar.Exactly(b, "api-calls", float64(calls), 0)
	made.decisions(url)
}

// decisions measures what a change of one add-on and a new platform cost.
func (b *bench) decisions(url string) {
	changed := mergedAddon(0)
	changed.Spec.Addons[0].DisplayName = "Changed"
	stored := &v1.AddonCatalogue{}
	expect.Get(b, b.seed, client.ObjectKeyFromObject(changed), stored)
	changed.ResourceVersion = stored.ResourceVersion
	expect.Update(b, b.seed, changed)
	var again time.Duration
	expect.Eventually(b, expect.Patience, func() error {
		var got answer
		if got, again = b.once(url, nil); !strings.Contains(got.body, `"Changed"`) {
			return fmt.Errorf("the change is not there yet")
		}
		return nil
	})
	_, other := b.once(strings.Replace(url, "1.36.3", "1.37.0", 1), nil)
	b.Logf("a decision: %s of CPU for another version, %s after a change of one add-on of %d (the request included)",
		other.Round(100*time.Microsecond), again.Round(100*time.Microsecond), addons)
	bar.None(b.B, "ms-decision", float64(other.Microseconds())/1000)
	bar.None(b.B, "ms-after-change", float64(again.Microseconds())/1000)
}

func (l load) with(url string, bytes int, header map[string]string) load {
	l.URL, l.Bytes, l.Header = url, bytes, header
	return l
}

func newBench(b *testing.B) *bench {
	server := fleet.ForTest(b, fleet.ClusterOptions{Name: "seed"}).Cluster("seed")
	made := &bench{B: b, token: server.Config.BearerToken}
	made.seed = kit.Client(b, server.Config)
	expect.Create(b, made.seed, kit.Namespace(place))
	for i := range addons {
		expect.Create(b, made.seed, mergedAddon(i))
	}
	made.serve(kit.Seed(b, server.Config, place))
	return made
}

// serve starts the endpoint in a manager, and the empty handler.
func (b *bench) serve(made *kit.Manager) {
	catalogue := query.NewCatalogue(place, mergedcatalogue.New(logr.Discard()), logr.Discard())
	expect.NoError(b, catalogue.Watch(made.Context(), made.GetCache()))
	b.reviews = &counting{Client: b.seed}
	key := client.ObjectKey{Namespace: place, Name: query.CertificateSecret}
	own := query.NewCertificate(key, []string{"127.0.0.1"}, nil)
	own.Use(b.seed, b.seed)
	// The run may take longer than the ten seconds that answers are kept for.
	reviews := query.NewReviews(b.reviews, query.ReviewOptions{TTL: time.Hour})
	held, err := wiring.HeldForQueries(made.Context(), made)
	expect.NoError(b, err)
	rows, bindings := query.NewRows(), query.NewBindings()
	expect.NoError(b, errors.Join(rows.Watch(made.Context(), made.GetCache()), bindings.Watch(made.Context(), held)))
	b.endpoint = query.New(query.Dependencies{
		Catalogue: catalogue, Clusters: made.Clusters, Rows: rows, Bindings: bindings, Available: held,
		Installations: made.GetClient(), Reviews: reviews, Certificates: own,
	}, query.Options{Address: "127.0.0.1:0", Logger: logr.Discard()})
	for _, runnable := range []manager.Runnable{own, b.endpoint} {
		expect.NoError(b, made.Add(runnable))
	}
	made.Run()
	expect.Eventually(b, expect.Patience, func() error { return b.endpoint.Ready(nil) })
	secret := &corev1.Secret{}
	expect.Get(b, b.seed, key, secret)
	b.authority = secret.Data["ca.crt"]
	b.serveEmpty(own, reviews)
}

// serveEmpty starts a handler that looks the token and the right up, as the endpoint does, and answers nothing, or bytes that
// are given to it.
func (b *bench) serveEmpty(certificates query.Certificates, reviews *query.Reviews) {
	listener, err := (&net.ListenConfig{}).Listen(b.Context(), "tcp", "127.0.0.1:0")
	expect.NoError(b, err)
	server := &http.Server{
		ReadHeaderTimeout: time.Minute,
		TLSConfig: &tls.Config{
			MinVersion: tls.VersionTLS12, GetCertificate: certificates.GetCertificate, NextProtos: []string{"http/1.1"},
			DynamicRecordSizingDisabled: true,
		},
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
		Handler: http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
			_, token, _ := strings.Cut(request.Header.Get("Authorization"), " ")
			identity, err := reviews.Identify(request.Context(), token)
			if err == nil {
				err = reviews.Authorise(request.Context(), identity, query.Access{Namespace: place, Resource: query.ResourceCatalogues})
			}
			if err != nil {
				writer.WriteHeader(http.StatusForbidden)
			} else if request.URL.Path == "/bytes" {
				_, _ = writer.Write(*b.given.Load())
			}
		}),
	}
	go func() { _ = server.ServeTLS(listener, "", "") }()
	b.Cleanup(func() { _ = server.Close() })
	b.empty = "https://" + listener.Addr().String()
	b.bytes = b.empty + "/bytes"
}

// answer is what came back, read.
type answer struct {
	*http.Response
	body string
}

// once asks from this process, and gives the CPU that both sides took.
func (b *bench) once(url string, header map[string]string) (answer, time.Duration) {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(b.authority)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, DisableCompression: true}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(b.Context(), http.MethodGet, url, http.NoBody)
	expect.NoError(b, err)
	request.Header.Set("Authorization", "Bearer "+b.token)
	for name, value := range header {
		request.Header.Set(name, value)
	}
	start := processorTime(b)
	got, err := (&http.Client{Transport: transport}).Do(request)
	expect.NoError(b, err)
	defer got.Body.Close()
	body, err := io.ReadAll(got.Body)
	if err != nil || got.StatusCode != http.StatusOK {
		b.Fatalf("got %d %s: %v", got.StatusCode, body, err)
	}
	return answer{got, string(body)}, processorTime(b) - start
}

func mergedAddon(i int) *v1.AddonCatalogue {
	source := rand.New(rand.NewPCG(uint64(i), 1)) // the same add-on each time
	name := fmt.Sprintf("%s-%s-%03d", word(source), word(source), i)
	addon := v1.Addon{
		Name: v1.AddonName(name), DisplayName: word(source) + " " + word(source), DocumentationURL: "https://docs.example.com/" + name,
	}
	for range 12 {
		addon.Description += word(source) + " "
	}
	var origins []string
	major := 1 + source.IntN(3)
	for v := range versionsOfEach {
		version := fmt.Sprintf("%d.%d.%d", major, v, source.IntN(5))
		addon.Versions = append(addon.Versions, v1.AddonVersion{
			Version: version, Constraints: &v1.Constraints{KKPVersion: ">= 2.28", K8sVersion: v1.VersionRange(fmt.Sprintf(">= 1.%d", 20+v%12))},
		})
		origins = append(origins, fmt.Sprintf(`%q:{"digest":"sha256:%064x","catalogue":"catalogue-%d"}`, version, i*1000+v, i%8))
	}
	made := given.Merged(place, "", addon)
	made.Annotations[v1.AnnotationVersions] = "{" + strings.Join(origins, ",") + "}"
	return made
}

// words of descriptions.
var words = strings.Fields(`collects metrics from every node and keeps them for a month the network of pods between clusters with
policies storage snapshots backup restores volumes to object stores secrets rotates certificates issues signed by an authority
ingress routes traffic balances load over replicas logs ships searches alerts dashboards traces requests mesh proxies scales
workloads by events queues messages streams data caches databases operators scans images for known holes enforces admission
rules gateway identity single sign on costs reports quotas cleans up old resources tests chaos registry mirrors charts`)

func word(source *rand.Rand) string { return words[source.IntN(len(words))] }

// processorTime is what this process has used so far, children not included.
func processorTime(b testing.TB) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	expect.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func median(of []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(of))
	return sorted[len(sorted)/2]
}

// ratioOf is the median of the ratios of rounds that ran one after the other, so that a busy machine touches both sides.
func ratioOf(of, to []time.Duration) float64 {
	ratios := make([]float64, len(of))
	for i := range of {
		ratios[i] = float64(of[i]) / float64(to[i])
	}
	slices.Sort(ratios)
	return ratios[len(ratios)/2]
}
