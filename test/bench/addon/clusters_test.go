package addon_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/trellis-addons/trellis/cmd/wiring"
	"github.com/trellis-addons/trellis/test/bench/bar"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/world"
)

const (
	clustersInAll = 10000
	// controllerVariable makes the test binary the controller's process; its value is the API server's URL.
	controllerVariable = "TRELLIS_BENCH_API_SERVER"
	// metricsVariable is the address of the controller's metrics.
	metricsVariable = "TRELLIS_BENCH_METRICS"
	patience        = 20 * time.Minute
	memoryBar       = 400 << 20
)

// runController runs until its standard input ends, which is when the benchmark goes.
func runController(url string) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = bufio.NewReader(os.Stdin).ReadByte()
		cancel()
	}()
	made, err := world.NewSeed(ctx, &rest.Config{Host: url, QPS: -1}, catalogueNamespace, func(options *manager.Options) {
		options.Metrics.BindAddress = os.Getenv(metricsVariable)
		options.MapperProvider = func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
			return mapper(), nil
		}
	})
	if err == nil {
		err = newController(made).SetupWithManager(made)
	}
	if err == nil {
		err = made.Start(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "controller:", err)
		return 1
	}
	return 0
}

// mapper knows all kinds of the scheme, as an API server does that serves them: the manager's cache asks for each kind that it may hold.
func mapper() meta.RESTMapper {
	made, isClusterWide := meta.NewDefaultRESTMapper(nil), map[string]bool{"Cluster": true, "Namespace": true}
	for kind := range wiring.Scheme().AllKnownTypes() {
		scope := meta.RESTScopeNamespace
		if isClusterWide[strings.TrimSuffix(kind.Kind, "List")] { // a client that lists asks for the kind of the list
			scope = meta.RESTScopeRoot
		}
		made.Add(kind, scope)
	}
	return made
}

// BenchmarkTenThousandClusters edits a catalogue of 5,000 versions that 10,000 clusters of 12 distinct versions are
// offered. The bars: an edit is decided once for each pair of versions, nothing is written where the selection is the same,
// and the controller's process never has more than 400 MiB.
func BenchmarkTenThousandClusters(b *testing.B) {
	server := newStub(b)
	listening := httptest.NewServer(server)
	b.Cleanup(listening.Close)
	controller := startController(b, listening.URL)
	begin := time.Now()
	expectSettled(b, server, clustersInAll)
	b.Logf("all catalogues of %d clusters are written after %s", clustersInAll, time.Since(begin).Round(time.Second))
	pairs := len(kubernetesVersions())

	before := controller.decisions(b)
	server.publish(mergedCatalogue(7, "another description", false))
	expectDecided(b, controller, before+pairs)
	expectIdle(b, controller)
	b.Log("an edit that leaves the selection as it is:")
	bar.Exactly(b, "decisions/equal-edit", float64(controller.decisions(b)-before), float64(pairs))
	bar.Exactly(b, "writes/equal-edit", float64(server.count()-clustersInAll), 0)

	begin = time.Now()
	before = controller.decisions(b)
	server.publish(mergedCatalogue(7, "another description", true))
	expectSettled(b, server, clustersInAll+clustersInAll/pairs)
	took := time.Since(begin)
	decided := controller.decisions(b) - before
	peak, err := fleet.PeakMemory(controller.id)
	expect.NoError(b, err)
	b.Logf("an edit that changes the selection of one version: %d of %d clusters are written", server.count()-clustersInAll, clustersInAll)
	bar.Exactly(b, "decisions/edit", float64(decided), float64(pairs))
	bar.None(b, "ms/edit", float64(took.Milliseconds()))
	bar.AtMost(b, "MiB-peak", float64(peak>>20), memoryBar>>20)
}

func expectSettled(b *testing.B, server *stub, want int) {
	b.Helper()
	expect.Eventually(b, patience, func() error {
		if have := server.count(); have != want {
			return fmt.Errorf("%d of %d catalogues are written", have, want)
		}
		return nil
	})
}

func expectDecided(b *testing.B, of *controllerProcess, want int) {
	b.Helper()
	expect.Eventually(b, patience, func() error {
		if have := of.decisions(b); have != want {
			return fmt.Errorf("%d decisions, want %d", have, want)
		}
		return nil
	})
}

// expectIdle waits until no reconciliation waits or is under way, so that what follows from an edit has been done.
func expectIdle(b *testing.B, of *controllerProcess) {
	b.Helper()
	expect.Eventually(b, patience, func() error {
		waiting, working := of.metric(b, `workqueue_depth{controller="addon"`), of.metric(b, `controller_runtime_active_workers{controller="addon"`)
		if waiting+working > 0 {
			return fmt.Errorf("%d reconciliations wait, %d are under way", waiting, working)
		}
		return nil
	})
}

// controllerProcess is the controller in a process of its own.
type controllerProcess struct {
	id      int
	metrics string
}

func startController(b *testing.B, url string) *controllerProcess {
	b.Helper()
	port, err := fleet.FreePort()
	expect.NoError(b, err)
	address := fmt.Sprintf("127.0.0.1:%d", port)
	program, err := os.Executable()
	expect.NoError(b, err)
	command := exec.CommandContext(b.Context(), program)
	command.Env = append(os.Environ(), controllerVariable+"="+url, metricsVariable+"="+address)
	command.Stderr = os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	input, err := command.StdinPipe()
	expect.NoError(b, err)
	expect.NoError(b, command.Start())
	b.Cleanup(func() {
		input.Close()
		_ = command.Wait()
	})
	return &controllerProcess{id: command.Process.Pid, metrics: "http://" + address + "/metrics"}
}

// decisions that the controller has made.
func (p *controllerProcess) decisions(b *testing.B) int {
	b.Helper()
	return p.metric(b, "trellis_available_decisions_total")
}

// metric is the sum of the series that begin so.
func (p *controllerProcess) metric(b *testing.B, prefix string) (sum int) {
	b.Helper()
	content, err := fleet.Get(b.Context(), p.metrics)
	expect.NoError(b, err)
	isKnown := false
	for line := range strings.Lines(string(content)) {
		at := strings.LastIndexByte(line, ' ')
		if at < 0 || !strings.HasPrefix(line, prefix) {
			continue
		}
		value, err := strconv.ParseFloat(strings.TrimSpace(line[at:]), 64)
		expect.NoError(b, err)
		sum, isKnown = sum+int(value), true
	}
	if !isKnown {
		b.Fatalf("the controller has no metric %s", prefix)
	}
	return sum
}
