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

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
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

func mapper() meta.RESTMapper {
	made := meta.NewDefaultRESTMapper([]schema.GroupVersion{v1.GroupVersion, corev1.SchemeGroupVersion})
	made.Add(kkpv1.GroupVersion.WithKind("Cluster"), meta.RESTScopeRoot)
	made.Add(v1.GroupVersion.WithKind("AddonCatalogue"), meta.RESTScopeNamespace)
	made.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	// Whoever lists asks for the kind of the list.
	made.Add(kkpv1.GroupVersion.WithKind("ClusterList"), meta.RESTScopeRoot)
	made.Add(v1.GroupVersion.WithKind("AddonCatalogueList"), meta.RESTScopeNamespace)
	return made
}

// BenchmarkTenThousandClusters edits a catalogue of 5,000 versions that 10,000 clusters of 12 distinct versions are
// offered. The bars: an edit is decided once for each pair of versions, nothing is written where the selection is the same,
// and the controller's process never has more than 400 MiB.
func BenchmarkTenThousandClusters(b *testing.B) {
	server := newStandIn(b)
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
	expect.Always(b, 3*time.Second, func() error {
		if have := server.count(); have != clustersInAll {
			return fmt.Errorf("an edit that leaves the selection as it is writes %d catalogues", have-clustersInAll)
		}
		return nil
	})
	b.Logf("an edit that leaves the selection as it is: %d decisions, no write", controller.decisions(b)-before)

	begin = time.Now()
	before = controller.decisions(b)
	server.publish(mergedCatalogue(7, "another description", true))
	expectSettled(b, server, clustersInAll+clustersInAll/pairs)
	took := time.Since(begin)
	if decided := controller.decisions(b) - before; decided != pairs {
		b.Errorf("decided %d times for %d pairs of versions", decided, pairs)
	}
	peak, err := fleet.PeakMemory(controller.id)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(peak>>20), "MiB-peak")
	b.ReportMetric(float64(took.Milliseconds()), "ms/edit")
	b.ReportMetric(float64(pairs), "decisions/edit")
	b.Logf("an edit that changes the selection of one version: %d decisions, %d of %d clusters written, after %s",
		pairs, server.count()-clustersInAll, clustersInAll, took.Round(time.Millisecond))
	b.Logf("peak memory of the controller's process: %d MiB (bar: 400 MiB)", peak>>20)
	if peak > memoryBar {
		b.Error("the bar is missed")
	}
}

func expectSettled(b *testing.B, server *standIn, want int) {
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

// controllerProcess is the controller in a process of its own.
type controllerProcess struct {
	id      int
	metrics string
}

func startController(b *testing.B, url string) *controllerProcess {
	b.Helper()
	port, err := fleet.FreePort()
	if err != nil {
		b.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	program, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	command := exec.CommandContext(b.Context(), program)
	command.Env = append(os.Environ(), controllerVariable+"="+url, metricsVariable+"="+address)
	command.Stderr = os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	input, err := command.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := command.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		input.Close()
		_ = command.Wait()
	})
	return &controllerProcess{id: command.Process.Pid, metrics: "http://" + address + "/metrics"}
}

func (p *controllerProcess) decisions(b *testing.B) int {
	b.Helper()
	content, err := fleet.Get(b.Context(), p.metrics)
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(content)) {
		if text, ok := strings.CutPrefix(line, "trellis_available_decisions_total "); ok {
			value, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
			if err != nil {
				b.Fatal(err)
			}
			return int(value)
		}
	}
	b.Fatal("the controller does not count its decisions")
	return 0
}
