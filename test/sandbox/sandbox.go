package sandbox

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/clusterapi"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/pod"
)

// Options say where a sandbox lives and what it tells.
type Options struct {
	// Folder of the sandbox; "" means .sandbox in the checkout.
	Folder string
	// Clusters says whose Clusters it has: "" means KKP's, or ClusterAPI.
	Clusters string
	// TwoMinors gives half of KKP's Clusters an older Kubernetes minor.
	TwoMinors bool
	// Progress takes a line per step; nil means none.
	Progress *fleet.Progress
	// Limited gives each manager the memory that its chart's container has, and not more.
	Limited bool
	// Elect names the control planes whose managers wait for their lease, as on a platform. The others work as soon as they start, also after
	// a crash.
	Elect []string
	// Replicated has two replicas of each manager, which wait for their lease. What is asked of webhooks and queries goes to the first.
	Replicated bool
	// Audit has the API servers note each call of the managers: those of user clusters all that an administrator calls.
	Audit bool
	// Approve are signers for which the seeds' managers approve certificates of agents themselves; without, somebody approves each.
	Approve []any
	// Web runs the web view too.
	Web bool
	// Environment are variables of managers, as KEY=value, by control plane.
	Environment map[string][]string
}

// Sandbox is a running platform.
type Sandbox struct {
	// Fleet has the control planes; Server finds one by its name.
	Fleet *fleet.Fleet
	// Sources are the git, Helm and OCI sources.
	Sources *fleet.Sources
	// Folder of the sandbox, absolute.
	Folder string

	root, cache  string
	clusters     string
	twoMinors    bool
	limited      bool
	elect        []string
	replicated   bool
	audit        bool
	approve      []any
	environments map[string][]string
	progress     *fleet.Progress
	lock         *os.File
	phases       []Phase
	clients      map[string]client.WithWatch
	managers     map[string]*Manager
	standbys     map[string]*Manager
	web          *webView
	ports        *fleet.Ports
	queryPorts   map[string]int
	metricsPorts map[string]int
	// webhooks are the addresses of the managers' webhooks, by control plane.
	webhooks map[string]string
	// deployed are the pods of the charts' Deployments, by control plane.
	deployed map[string]corev1.PodSpec
	// refused is why pods can't be confined on this machine; nil: they are.
	refused error
	// provider plays the providers of Cluster API, where there is that.
	provider *clusterapi.Player
	stop     sync.Once
}

// Phase is one part of the start and the time it took.
type Phase struct {
	Name string
	Time time.Duration
}

// Scheme knows the kinds that the sandbox and its users handle.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))
	utilruntime.Must(kubermaticv1.AddToScheme(scheme))
	utilruntime.Must(kkpv1.AddToScheme(scheme))
	return scheme
}

// Start starts everything and returns when it is usable. A RunningError says that a sandbox runs in the folder already.
// What was started by an unsuccessful call is stopped again; its logs stay, unless it was interrupted.
func Start(ctx context.Context, options Options) (*Sandbox, error) {
	root, err := binaries.Root()
	if err != nil {
		return nil, err
	}
	cache, err := binaries.Cache()
	if err != nil {
		return nil, err
	}
	folder, err := folderOf(options.Folder)
	if err != nil {
		return nil, err
	}
	log.SetLogger(logr.Discard()) // the clients' library warns at length when nobody has said where to log
	s := &Sandbox{
		Folder: folder, clusters: options.Clusters, twoMinors: options.TwoMinors, root: root, cache: cache,
		limited: options.Limited,
		elect:   options.Elect, replicated: options.Replicated, audit: options.Audit, approve: options.Approve, environments: options.Environment,
		progress: options.Progress, clients: map[string]client.WithWatch{}, managers: map[string]*Manager{}, standbys: map[string]*Manager{},
	}
	if options.Web {
		s.web = newWebView()
	}
	if s.lock, err = register(folder); err != nil {
		return nil, err
	}
	if err := s.start(ctx); err != nil {
		s.end(ctx.Err() == nil)
		return nil, err
	}
	return s, nil
}

func (s *Sandbox) start(ctx context.Context) error {
	steps := s.steps()
	if s.web != nil {
		steps = append(steps, step{"starting the web view", s.startWeb})
	}
	for _, step := range steps {
		begin := time.Now()
		s.progress.Printf("%s ...", step.name)
		if err := step.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		s.phases = append(s.phases, Phase{step.name, time.Since(begin)})
	}
	return os.WriteFile(s.path("ready"), nil, 0o600)
}

// step is a part of the start.
type step struct {
	name string
	run  func(context.Context) error
}

func (s *Sandbox) steps() []step {
	steps := []step{
		{"building the programs", s.build},
		{fmt.Sprintf("starting %d control planes and the sources", len(s.names())), s.startControlPlanes},
		{"laying out the platform", s.layOut},
		{"installing the charts", s.install},
	}
	if s.clusters == ClusterAPI {
		return append(steps,
			step{"starting Cluster API", s.startClusterAPI},
			step{"starting the managers", s.startManagers},
			step{"connecting to the query endpoints", s.publishQuery},
			step{"making the Clusters", s.makeTeam},
			step{"distributing the sample catalogue", s.distributeSamples},
			step{"waiting until upgrades would be held", s.awaitHolds},
		)
	}
	return append(steps,
		step{"starting the managers", s.startManagers},
		step{"connecting to the query endpoints", s.publishQuery},
		step{"connecting the user clusters", s.connectClusters},
		step{"distributing the sample catalogue", s.distributeSamples},
	)
}

// Needs are the groups of control-plane programs that a sandbox runs.
func Needs(clusters string, twoMinors bool) []binaries.Need {
	needs := []binaries.Need{binaries.Base}
	if clusters == ClusterAPI {
		return append(needs, binaries.OlderMinor, binaries.ClusterAPI)
	}
	if twoMinors {
		needs = append(needs, binaries.OlderMinor)
	}
	return needs
}

// build makes the control planes' programs, where they are not cached, and both managers.
func (s *Sandbox) build(ctx context.Context) error {
	builder := binaries.Builder{Root: s.root, Cache: s.cache, Out: s.progress}
	if err := builder.Build(ctx, Needs(s.clusters, s.twoMinors)...); err != nil {
		return err
	}
	s.progress.Printf("building the programs of this checkout")
	packages := []string{"./cmd/master-controller-manager", "./cmd/seed-controller-manager", "./cmd/kubectl-addons", pod.EnterPackage}
	if s.web != nil {
		packages = append(packages, "./cmd/trellis-web")
	}
	if err := binaries.BuildOwn(ctx, s.root, s.path("bin"), packages...); err != nil {
		return err
	}
	if s.refused = pod.Refused(ctx, s.path("bin", pod.Enter)); s.refused != nil {
		s.progress.Printf("managers will be plain processes, and not confined as in pods: %v", s.refused)
	}
	return nil
}

func (s *Sandbox) startControlPlanes(ctx context.Context) error {
	var err error
	if s.ports, err = fleet.RememberPorts(s.path("ports")); err != nil {
		return err
	}
	if s.Sources, err = fleet.StartSources(s.path("sources"), s.ports); err != nil {
		return err
	}
	s.Fleet, err = fleet.Start(ctx, fleet.Options{
		Folder: s.path("controlplanes"), Logs: s.path("logs"), Clusters: s.controlPlanes(), Progress: s.progress,
		Keep: true, Ports: s.ports,
	})
	if err != nil {
		return err
	}
	for _, name := range s.names() {
		config := s.Server(name).Config
		if s.clients[name], err = client.NewWithWatch(config, client.Options{Scheme: Scheme()}); err != nil {
			return fmt.Errorf("making a client of %q: %w", name, err)
		}
	}
	s.clients[Master] = s.clients[s.platform()[0]]
	if err := errors.Join(s.findPorts(), s.findWebPort()); err != nil {
		return err
	}
	return s.publish()
}

// Client reaches a control plane as cluster-admin.
func (s *Sandbox) Client(name string) client.WithWatch { return s.clients[name] }

// Phases are the parts of the start.
func (s *Sandbox) Phases() []Phase { return s.phases }

// Stop ends everything and removes the folder, except what somebody else put there: sources, what was pushed to the registry, flags;
// and the ports, which the next one has again. It may be called more than once.
func (s *Sandbox) Stop() { s.end(false) }

func (s *Sandbox) end(keepLogs bool) {
	s.stop.Do(func() {
		_ = os.Remove(s.path("ready"))
		for _, manager := range slices.Concat(slices.Collect(maps.Values(s.managers)), slices.Collect(maps.Values(s.standbys))) {
			manager.Stop()
		}
		if s.web != nil && s.web.program != nil {
			s.web.program.Stop()
		}
		if s.provider != nil {
			s.provider.Stop()
		}
		if s.Sources != nil {
			s.Sources.Stop()
		}
		if s.Fleet != nil {
			s.Fleet.Stop()
		}
		s.deregister(keepLogs)
	})
}

func (s *Sandbox) path(elements ...string) string {
	return filepath.Join(append([]string{s.Folder}, elements...)...)
}

var errNotYet = errors.New("not yet")
