// Package manager is what both managers' wiring has in common: flags, scheme, logs, probes, leader election and the serving
// of admission.
package manager

import (
	"flag"
	"fmt"
	"log/slog"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// Flags that both managers take.
type Flags struct {
	// Namespace is the platform's namespace.
	Namespace string
	// CatalogueNamespace holds merged catalogues on a seed.
	CatalogueNamespace string
	// WorkerName restricts the manager to objects with that label; empty: those without.
	WorkerName string
	// Standalone runs without KKP.
	Standalone bool

	leaderElect                  bool
	metricsAddress, probeAddress string
	verbosity                    int
	admission                    admissionFlags
}

// Register puts the flags into a set, beside --kubeconfig.
func (f *Flags) Register(set *flag.FlagSet) {
	set.StringVar(&f.Namespace, "namespace", "kubermatic", "the platform's namespace")
	set.StringVar(&f.CatalogueNamespace, "catalogue-namespace", "addon-catalogue", "the namespace of merged catalogues on every seed")
	set.StringVar(&f.WorkerName, "worker-name", "", "handle only objects with this worker-name label; empty: only those without it")
	set.BoolVar(&f.Standalone, "standalone", false, "run without KKP: fill in what its controllers would")
	set.BoolVar(&f.leaderElect, "leader-elect", true, "let one of several replicas work at a time")
	set.StringVar(&f.metricsAddress, "metrics-bind-address", "127.0.0.1:8085", "address of the metrics endpoint; 0 turns it off")
	set.StringVar(&f.probeAddress, "health-probe-bind-address", ":8081", "address of /healthz and /readyz; 0 turns it off")
	f.admission.register(set)
	set.IntVar(&f.verbosity, "v", 0, "log verbosity; higher tells more")
}

// Logger writes structured lines to standard error, and is set for controller-runtime and klog alike.
func (f *Flags) Logger() logr.Logger {
	handler := slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.Level(-f.verbosity)})
	logger := logr.FromSlogHandler(handler)
	ctrl.SetLogger(logger)
	return logger
}

// Scheme knows every kind that Trellis reads or writes.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(kubermaticv1.AddToScheme(scheme))
	utilruntime.Must(kkpv1.AddToScheme(scheme))
	return scheme
}

// New makes a manager under a lease, whose cache holds some kinds in part only. Clients are not limited on our side: API
// servers have priority and fairness.
func (f *Flags) New(config *rest.Config, lease string, held map[client.Object]cache.ByObject) (manager.Manager, error) {
	config.QPS = -1
	if f.WorkerName != "" {
		lease += "-" + f.WorkerName
	}
	webhooks, err := f.admission.server(f.Namespace)
	if err != nil {
		return nil, err
	}
	made, err := ctrl.NewManager(config, manager.Options{
		Scheme: Scheme(), Cache: cache.Options{DefaultTransform: cache.TransformStripManagedFields(), ByObject: held},
		LeaderElection: f.leaderElect, LeaderElectionID: lease, LeaderElectionNamespace: f.Namespace,
		LeaderElectionReleaseOnCancel: true,
		Metrics:                       metricsserver.Options{BindAddress: f.metricsAddress},
		HealthProbeBindAddress:        f.probeAddress,
		WebhookServer:                 webhooks,
	})
	if err != nil {
		return nil, fmt.Errorf("making the manager: %w", err)
	}
	if err := made.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, fmt.Errorf("adding the health check: %w", err)
	}
	if err := made.AddReadyzCheck("ping", healthz.Ping); err != nil {
		return nil, fmt.Errorf("adding the readiness check: %w", err)
	}
	return made, nil
}
