// Package manager has the flags, logs, probes, election and admission of both managers.
//
//rights:master,seed create tokenreviews.authentication.k8s.io if=metrics -- authenticates clients that read metrics
//rights:master,seed create subjectaccessreviews.authorization.k8s.io if=metrics -- authorizes clients that read metrics
package manager

import (
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/trellis-addons/trellis/cmd/wiring"
	"github.com/trellis-addons/trellis/pkg/base/fence"
	"github.com/trellis-addons/trellis/pkg/base/loop"
)

// Flags are the flags of both managers.
type Flags struct {
	// Namespace is the platform's namespace.
	Namespace string
	// CatalogueNamespace has merged catalogues on a seed.
	CatalogueNamespace string
	// WorkerName restricts the manager to objects with that label; empty: those without.
	WorkerName string
	// Standalone runs without KKP.
	Standalone bool
	// Fence keeps a manager that does not lead from writing. New makes it if leaders are elected. The manager's clients
	// are behind it; clients of other clusters must be.
	Fence *fence.Fence

	election     election
	metrics      metricsFlags
	debug        debugFlags
	tracing      tracingFlags
	set          *flag.FlagSet
	probeAddress string
	verbosity    int
	level        *slog.LevelVar
	memory       int64
	version      bool
	admission    admissionFlags
	task         string
	taskAccount  string
	taskRoles    []string
}

// Register puts the flags into a set, in addition to --kubeconfig.
func (f *Flags) Register(set *flag.FlagSet) {
	set.StringVar(&f.Namespace, "namespace", "kubermatic", "the platform's namespace")
	set.StringVar(&f.CatalogueNamespace, "catalogue-namespace", "addon-catalogue", "the namespace of merged catalogues on every seed")
	set.StringVar(&f.WorkerName, "worker-name", "",
		"handle only objects whose label worker-name has this value; empty: only objects without the label")
	set.BoolVar(&f.Standalone, "standalone", false, "run without KKP: the manager also does the work of KKP's controllers that add-ons need")
	f.election.register(set)
	f.metrics.register(set)
	f.debug.register(set)
	f.tracing.register(set)
	f.set = set
	set.StringVar(&f.probeAddress, "health-probe-bind-address", ":8081", "address of /healthz and /readyz; 0 turns it off")
	f.admission.register(set)
	set.Int64Var(&f.memory, "memory-limit", 0, "the container's memory in bytes, from which the manager derives its own limit; 0: no limit")
	set.BoolVar(&f.version, "version", false, "print version, commit and the commit's date, and exit")
	set.StringVar(&f.task, "task", "", "run one task for the chart, print the result, and exit: crds, removal or check")
	set.StringVar(&f.taskAccount, "task-account", "", "with --task=check: the manager's ServiceAccount in --namespace")
	ListVar(set, &f.taskRoles, "task-cluster-roles",
		"with --task=removal: ClusterRoles to delete if no object is left, comma-separated or repeated", Name)
	set.IntVar(&f.verbosity, "v", 0, fmt.Sprintf("log verbosity, from 0 to %d; higher numbers log more", mostVerbose))
	f.level = &slog.LevelVar{}
}

// mostVerbose is the highest verbosity. From 7 on client-go's loggers write headers, and from 8 on
// bodies: Secrets, in clear or hexadecimal.
const mostVerbose = 6

// Logger writes structured lines to standard error, also for controller-runtime and client-go.
func (f *Flags) Logger() logr.Logger {
	logger := f.loggerTo(os.Stderr)
	ctrl.SetLogger(logger)
	return logger
}

// loggerTo bounds the verbosity in the handler, below which no logger can go. The debug endpoint
// changes it.
func (f *Flags) loggerTo(writer io.Writer) logr.Logger {
	f.level.Set(slog.Level(-min(f.verbosity, mostVerbose)))
	return logr.FromSlogHandler(leveled{slog.NewTextHandler(writer, &slog.HandlerOptions{Level: f.level})})
}

// New makes a manager with a lease and a cache of these options. Clients have no rate limit: API servers have
// priority and fairness.
func (f *Flags) New(config *rest.Config, lease string, held cache.Options) (manager.Manager, error) {
	config.QPS = -1
	if err := countOwnRequests(config); err != nil {
		return nil, err
	}
	webhooks, err := f.admission.server(f.Namespace)
	if err != nil {
		return nil, err
	}
	options := manager.Options{
		Scheme: wiring.Scheme(), Cache: held, NewClient: loop.NewClient,
		Metrics:                f.metrics.options(),
		HealthProbeBindAddress: f.probeAddress,
		WebhookServer:          webhooks,
	}
	service, _, _ := strings.Cut(lease, ".")
	tracer, err := f.tracing.tracer(f.set, service, ctrl.Log)
	if err != nil {
		return nil, err
	}
	trace(tracer, config, &options)
	if f.election.on {
		if f.Fence, err = f.election.term.Join(config, f.Namespace, f.lease(lease), &options); err != nil {
			return nil, err
		}
	}
	made, err := ctrl.NewManager(config, options)
	if err != nil {
		return nil, fmt.Errorf("creating the manager: %w", err)
	}
	if err := runTracer(tracer, made); err != nil {
		return nil, err
	}
	if f.Fence != nil {
		if err := made.Add(f.Fence); err != nil {
			return nil, fmt.Errorf("adding the fence: %w", err)
		}
	}
	if err := made.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, fmt.Errorf("adding the health check: %w", err)
	}
	if err := made.AddReadyzCheck("ping", healthz.Ping); err != nil {
		return nil, fmt.Errorf("adding the readiness check: %w", err)
	}
	if err := f.debug.add(made, f.level); err != nil {
		return nil, err
	}
	return made, nil
}

// lease is the lease of this worker.
func (f *Flags) lease(name string) string {
	if f.WorkerName != "" {
		name += "-" + f.WorkerName
	}
	return name
}
