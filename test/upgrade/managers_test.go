package upgrade

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-addons/trellis/test/charts"
	"github.com/trellis-addons/trellis/test/disk"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/pod"
)

// patience is how long hundreds of installations may take.
const patience = 3 * time.Minute

// manager is a program that runs.
type manager struct {
	process *fleet.Process
	metrics string
	log     string
}

// start runs a release's program as the pod of the Deployment that the API server has, and returns when it is ready.
func (p *platform) start(of release, chart, where string) {
	p.t.Helper()
	folder := disk.TempDir(p.t)
	log := filepath.Join(folder, "log")
	node := p.node(where, folder)
	err := fleet.WithPort(p.t.Context(), func(ctx context.Context, port int) error {
		free, err := fleet.FreePort()
		if err != nil {
			return err
		}
		probes, metrics := fmt.Sprintf("127.0.0.1:%d", port), fmt.Sprintf("127.0.0.1:%d", free)
		arguments := []string{
			"--leader-elect=false", "--health-probe-bind-address=" + probes, "--metrics-bind-address=" + metrics,
		}
		spec := p.specOf(chart, where)
		if slices.ContainsFunc(spec.Containers[0].Args, func(argument string) bool { return strings.HasPrefix(argument, "--metrics-secure=") }) {
			arguments = append(arguments, "--metrics-secure=false") // older releases know of none
		}
		if chart == "trellis-seed" {
			arguments = append(arguments, "--query-bind-address=0")
		}
		process, err := node.Run(ctx, pod.Container{
			Name: chart, Namespace: platformNamespace, Spec: spec, Program: of.program(charts.Program(chart)), Arguments: arguments, Log: log,
		})
		if err != nil {
			return err
		}
		p.managers[where+chart] = &manager{process: process, metrics: "http://" + metrics + "/metrics", log: log}
		return process.Await(ctx, "the manager to be ready", func(ctx context.Context) error {
			_, err := fleet.Get(ctx, "http://"+probes+"/readyz")
			return err
		})
	})
	expect.NoError(p.t, err)
	p.t.Cleanup(func() {
		if p.t.Failed() {
			p.t.Logf("the end of the log of %s of %s:\n%s", chart, of, fleet.Tail(log, 12))
		}
	})
}

// node is where the pods of an API server run, whose volumes are in a folder.
func (p *platform) node(where, folder string) *pod.Node {
	return &pod.Node{
		Fleet: p.fleet, Cluster: p.fleet.Cluster(where), Client: p.client(where), Folder: folder, Enter: thisRelease(p.t).program(pod.Enter),
	}
}

// stop ends a manager as its Deployment would.
func (p *platform) stop(chart, where string) {
	p.t.Helper()
	running := p.managers[where+chart]
	expect.NoError(p.t, running.process.Signal(syscall.SIGTERM))
	select {
	case <-running.process.Done():
	case <-time.After(expect.Patience):
		p.t.Fatalf("%s does not end", chart)
	}
	delete(p.managers, where+chart)
}

// kubeconfig with a token of a ServiceAccount in the platform namespace.
func (p *platform) kubeconfig(where, account string) []byte {
	p.t.Helper()
	of := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: platformNamespace, Name: account}}
	token := expect.Token(p.t, p.client(where), of)
	content, err := p.fleet.Cluster(where).KubeconfigFor(token)
	expect.NoError(p.t, err)
	return content
}

// metrics of a manager at one moment.
type metrics []string

func (p *platform) metrics(ctx context.Context, of *manager) (metrics, error) {
	content, err := fleet.Get(ctx, of.metrics)
	return strings.Split(string(content), "\n"), err
}

// sum of the lines of a metric that have a word, such as a label.
func (m metrics) sum(name, word string) (sum float64) {
	for _, line := range m {
		labels, value, isOne := strings.Cut(line, "} ")
		if !isOne || !strings.HasPrefix(labels, name+"{") || !strings.Contains(labels, word) {
			continue
		}
		number, err := strconv.ParseFloat(value, 64)
		if err == nil {
			sum += number
		}
	}
	return sum
}
