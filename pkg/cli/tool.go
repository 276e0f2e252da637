package cli

import (
	"context"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/buildinfo"
	"github.com/trellis-addons/trellis/pkg/base/text"
)

// Tool is what all verbs of one call have: streams, the terminal, a clock, and the flags of the connection.
type Tool struct {
	genericiooptions.IOStreams
	// Width of the terminal in columns; 0: the output is no terminal.
	Width int
	// Colour says whether output has colours.
	Colour bool
	// Asks says whether the caller can answer: input and errors are terminals.
	Asks bool
	// Now is the clock.
	Now func() time.Time

	connection *genericclioptions.ConfigFlags
	cluster    string
}

// NewTool makes a Tool without a terminal.
func NewTool(streams genericiooptions.IOStreams) *Tool {
	made := &Tool{IOStreams: streams, Now: time.Now, connection: genericclioptions.NewConfigFlags(true)}
	made.connection.ClusterName = nil // --cluster names a user cluster
	return made
}

// OnTerminal makes a Tool for the streams of the process, with colours where the output is a terminal and the
// environment has no NO_COLOR.
func OnTerminal() *Tool {
	made := NewTool(genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr})
	made.Asks = term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stderr.Fd()))
	if output := int(os.Stdout.Fd()); term.IsTerminal(output) {
		if made.Width, _, _ = term.GetSize(output); made.Width <= 0 {
			made.Width = 80
		}
		made.Colour = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	}
	return made
}

// shown are the flags of the connection in every help; kubectl's others work too.
var shown = map[string]bool{"kubeconfig": true, "context": true, "namespace": true}

func (t *Tool) addFlags(flags *pflag.FlagSet) {
	t.connection.AddFlags(flags)
	flags.VisitAll(func(flag *pflag.Flag) { flag.Hidden = !shown[flag.Name] })
}

// Platform is the API server of the context.
type Platform struct {
	// WithWatch calls it. Refusals for lack of rights name the right.
	client.WithWatch
	// Server is its URL, and Config the connection with the caller's credentials.
	Server string
	Config *rest.Config
	// IsSeed says whether it has installations; IsMaster, whether it has sets and catalogues only.
	IsSeed, IsMaster bool
}

// Connect connects to the API server of the context. Errors have a code and say what to do.
func (t *Tool) Connect(ctx context.Context) (*Platform, error) {
	config, err := t.connection.ToRESTConfig()
	if err != nil {
		return nil, &Error{Code: ExitUsage, Hint: "check --kubeconfig, KUBECONFIG and --context", Err: err}
	}
	return t.connect(ctx, config)
}

// UserCluster connects to the API server of a user cluster by the file of its kubeconfig. It reads a limited part of each answer.
func (t *Tool) UserCluster(ctx context.Context, kubeconfig string) (*Platform, error) {
	flags := genericclioptions.NewConfigFlags(false)
	flags.KubeConfig = &kubeconfig
	config, err := flags.ToRESTConfig()
	if err != nil {
		return nil, &Error{Code: ExitUsage, Hint: "name the kubeconfig of the user cluster with --user-kubeconfig", Err: err}
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return limited{next} })
	return t.connect(ctx, config)
}

// answerLimit is the size of the largest answer of a user cluster that is read, in bytes.
const answerLimit = 32 << 20

// limited reads a limited part of each answer.
type limited struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (l limited) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := l.RoundTripper.RoundTrip(request)
	if err == nil {
		answer.Body = http.MaxBytesReader(nil, answer.Body, answerLimit)
	}
	return answer, err
}

func (t *Tool) connect(ctx context.Context, config *rest.Config) (*Platform, error) {
	config.QPS, config.Burst = 50, 300
	config.UserAgent = "kubectl-addons/" + buildinfo.Read().Version
	config.WarningHandler = &warnings{out: t.ErrOut, printed: map[string]bool{}}
	made := &Platform{Server: config.Host, Config: config}
	if err := made.find(ctx, config); err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1.AddToScheme(scheme))
	calls, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	made.WithWatch = named{calls}
	return made, nil
}

// find finds out what the API server is.
func (p *Platform) find(ctx context.Context, config *rest.Config) error {
	asked, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return &Error{Code: ExitUsage, Hint: "check --kubeconfig, KUBECONFIG and --context", Err: err}
	}
	served := &metav1.APIResourceList{}
	err = asked.RESTClient().Get().AbsPath("apis", v1.GroupVersion.Group, v1.GroupVersion.Version).Do(ctx).Into(served)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case apierrors.IsNotFound(err):
		return nil
	case isUnreachable(err):
		return &Error{Code: ExitUnreachable, Hint: "check the context, or choose another with --context", Err: err}
	case err != nil:
		return err
	}
	hasSets := false
	for _, resource := range served.APIResources {
		p.IsSeed = p.IsSeed || resource.Name == resourceInstallations
		hasSets = hasSets || resource.Name == "addonsets"
	}
	p.IsMaster = hasSets && !p.IsSeed
	return nil
}

const resourceInstallations = "addoninstallations"

// Seed connects to the context's API server, which has to be that of a seed.
func (t *Tool) Seed(ctx context.Context) (*Platform, error) {
	found, err := t.Connect(ctx)
	if err != nil {
		return nil, err
	}
	switch {
	case found.IsSeed:
		return found, nil
	case found.IsMaster:
		return nil, Fail(ExitContext, "choose the context of a seed with --context",
			"%s is a master, and installations are on seeds", found.Server)
	}
	return nil, neither(found, "seed")
}

// WithSets connects to the context's API server, which has to be that of a master or a seed.
func (t *Tool) WithSets(ctx context.Context) (*Platform, error) {
	found, err := t.Connect(ctx)
	if err == nil && !found.IsSeed && !found.IsMaster {
		return nil, neither(found, "master")
	}
	return found, err
}

func neither(found *Platform, wanted string) error {
	hint := "choose the context of a " + wanted + " with --context"
	return Fail(ExitContext, hint, "%s has no add-ons: it is neither a master nor a seed", found.Server)
}

// warnings prints each warning of API servers once, although a write repeats those of its dry run.
type warnings struct {
	out     io.Writer
	lock    sync.Mutex
	printed map[string]bool
}

// HandleWarningHeader implements rest.WarningHandler.
func (w *warnings) HandleWarningHeader(code int, _ string, message string) {
	w.lock.Lock()
	defer w.lock.Unlock()
	if code == 299 && message != "" && !w.printed[message] {
		w.printed[message] = true
		_, _ = io.WriteString(w.out, "warning: "+text.Line(message)+"\n")
	}
}

// ClusterFlag adds flag --cluster to a command.
func (t *Tool) ClusterFlag(command *cobra.Command) {
	command.Flags().StringVar(&t.cluster, "cluster", "", "name of the user cluster; NAMESPACE/NAME for one of Cluster API")
	_ = command.RegisterFlagCompletionFunc("cluster", t.Completes(0, t.ClusterNames))
}
