package upgrade

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
)

// patience is how long hundreds of installations may take.
const patience = 3 * time.Minute

// manager is a program that runs.
type manager struct {
	process *fleet.Process
	metrics string
	log     string
}

// programOf a chart.
func programOf(chart string) string {
	return strings.TrimPrefix(chart, "trellis-") + "-controller-manager"
}

// start runs a release's program with the arguments of the Deployment and the account of the chart, as a kubelet would, and returns
// when it is ready.
func (p *platform) start(of release, chart, where string) {
	p.t.Helper()
	path := filepath.Join(p.t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, p.kubeconfig(where, chart), 0o600); err != nil {
		p.t.Fatal(err)
	}
	folder := p.t.TempDir()
	log := filepath.Join(folder, "log")
	err := fleet.WithPort(p.t.Context(), func(ctx context.Context, port int) error {
		free, err := fleet.FreePort()
		if err != nil {
			return err
		}
		probes, metrics := fmt.Sprintf("127.0.0.1:%d", port), fmt.Sprintf("127.0.0.1:%d", free)
		here := map[string]string{
			"--health-probe-bind-address": probes, "--metrics-bind-address": metrics, "--metrics-secure": "false",
			"--query-bind-address": "0", "--memory-limit": "536870912", "--store-folder": filepath.Join(folder, "store"),
		}
		arguments := []string{"--kubeconfig", path, "--leader-elect=false"}
		for _, argument := range p.argumentsOf(chart, where) {
			name, _, _ := strings.Cut(argument, "=")
			if own, isReplaced := here[name]; isReplaced {
				argument = name + "=" + own
			}
			arguments = append(arguments, argument)
		}
		process, err := p.fleet.Run(fleet.Command{Name: chart, Path: of.program(programOf(chart)), Arguments: arguments, Log: log})
		if err != nil {
			return err
		}
		p.managers[where+chart] = &manager{process: process, metrics: "http://" + metrics + "/metrics", log: log}
		return process.Await(ctx, "the manager to be ready", func(ctx context.Context) error {
			_, err := fleet.Get(ctx, "http://"+probes+"/readyz")
			return err
		})
	})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		if p.t.Failed() {
			p.t.Logf("the end of the log of %s of %s:\n%s", chart, of, fleet.Tail(log, 12))
		}
	})
}

// stop ends a manager as its Deployment would.
func (p *platform) stop(chart, where string) {
	p.t.Helper()
	running := p.managers[where+chart]
	if err := running.process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
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
	token := &authenticationv1.TokenRequest{}
	of := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: platformNamespace, Name: account}}
	if err := p.client(where).SubResource("token").Create(p.t.Context(), of, token); err != nil {
		p.t.Fatal(err)
	}
	config, err := clientcmd.Load(p.fleet.Cluster(where).Kubeconfig)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, user := range config.AuthInfos {
		user.Token = token.Status.Token
	}
	content, err := clientcmd.Write(*config)
	if err != nil {
		p.t.Fatal(err)
	}
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
