package clusters

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/trellis-addons/trellis/test/disk"
	"github.com/trellis-addons/trellis/test/fleet"
)

// manager is the program of a seed, as a process.
type manager struct {
	t testing.TB
	*fleet.Process
	log, metrics, debug string
}

// startManager runs the program until the test ends.
func startManager(t testing.TB, f *fleet.Fleet, kubeconfig []byte, flags ...string) *manager {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	home := disk.TempDir(t)
	reach, probes := filepath.Join(home, "kubeconfig"), freeAddress(t)
	if err := os.WriteFile(reach, kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	m := &manager{t: t, log: filepath.Join(home, "log"), metrics: freeAddress(t), debug: freeAddress(t)}
	m.Process, err = f.Run(fleet.Command{
		Name: "seed-controller-manager", Path: path, Home: home, Log: m.log, Arguments: append([]string{
			"--kubeconfig", reach, "--namespace", platformNamespace, "--catalogue-namespace", catalogueNamespace, "--leader-elect=false",
			"--allow-source-cidrs", "127.0.0.0/8", "--allow-cluster-cidrs", "127.0.0.0/8", "--store-folder", filepath.Join(home, "store"),
			"--query-bind-address", "0", "--health-probe-bind-address", probes, "--metrics-bind-address", m.metrics,
			"--debug-bind-address", m.debug,
		}, flags...),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		m.Kill()
		if t.Failed() {
			t.Logf("the end of the manager's log:\n%s", fleet.Tail(m.log, 20))
		}
	})
	err = m.Await(t.Context(), "the manager to be ready", func(ctx context.Context) error {
		_, err := fleet.Get(ctx, "http://"+probes+"/readyz")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func freeAddress(t testing.TB) string {
	t.Helper()
	port, err := fleet.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", port)
}

// sums adds up a metric by the value of one of its labels.
func (m *manager) sums(metric, label string) map[string]int {
	m.t.Helper()
	found := map[string]int{}
	for line := range strings.Lines(m.get("http://" + m.metrics + "/metrics")) {
		series, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		labels, isIt := strings.CutPrefix(series, metric+"{")
		if !isIt {
			continue
		}
		_, after, _ := strings.Cut(labels, label+`="`)
		name, _, _ := strings.Cut(after, `"`)
		number, err := strconv.ParseFloat(value, 64)
		if err != nil {
			m.t.Fatalf("%s: %v", line, err)
		}
		found[name] += int(number)
	}
	return found
}

// runs are those of each controller so far.
func (m *manager) runs() map[string]int {
	return m.sums("controller_runtime_reconcile_total", "controller")
}

// reconciled counts the reconciliations of a controller whose objects are such, by the log: it takes flag --v=5.
func (m *manager) reconciled(controller string, isSuch func(namespace, name string) bool) (count int) {
	m.t.Helper()
	content, err := os.ReadFile(m.log)
	if err != nil {
		m.t.Fatal(err)
	}
	seen := 0
	for line := range strings.Lines(string(content)) {
		fields := map[string]string{}
		for field := range strings.FieldsSeq(line) {
			if key, value, isPair := strings.Cut(field, "="); isPair {
				fields[key] = value
			}
		}
		if fields["msg"] != "Reconciling" || fields["controller"] != controller {
			continue
		}
		seen++
		if isSuch(fields["namespace"], fields["name"]) {
			count++
		}
	}
	if seen == 0 {
		m.t.Fatalf("the log has no reconciliation of %s", controller)
	}
	return count
}

// busy is how many requests wait, or are worked on.
func (m *manager) busy() (count int) {
	for _, metric := range []string{"workqueue_depth", "controller_runtime_active_workers"} {
		for _, value := range m.sums(metric, "controller") {
			count += value
		}
	}
	return count
}

// heap is what lives on the manager's heap, in bytes, after it was cleaned up.
func (m *manager) heap() int64 {
	m.t.Helper()
	var allocated int64
	for range 2 { // what has a finalizer goes with the second
		for line := range strings.Lines(m.get("http://" + m.debug + "/debug/pprof/heap?gc=1&debug=1")) {
			if text, isIt := strings.CutPrefix(line, "# HeapAlloc = "); isIt {
				number, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
				if err != nil {
					m.t.Fatal(err)
				}
				allocated = number
			}
		}
	}
	if allocated == 0 {
		m.t.Fatal("the profile does not say how large the heap is")
	}
	return allocated
}

func (m *manager) get(url string) string {
	m.t.Helper()
	if err := m.Failure(); err != nil {
		m.t.Fatal(err)
	}
	content, err := fleet.Get(m.t.Context(), url)
	if err != nil {
		m.t.Fatal(err)
	}
	return string(content)
}

// errors are the lines of the log that say one.
func (m *manager) errors() (lines []string) {
	m.t.Helper()
	content, err := os.ReadFile(m.log)
	if err != nil {
		m.t.Fatal(err)
	}
	for line := range strings.Lines(string(content)) {
		if strings.Contains(line, "level=ERROR") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}
