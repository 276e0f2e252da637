package cli_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/cmd/wiring/verbs"
	"github.com/trellis-addons/trellis/pkg/cli"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/given"
	"github.com/trellis-addons/trellis/test/world"
)

// Red when the first call to an API server that does not answer goes on after Ctrl-C (Platform.find).
func TestInterruptingACallEndsIt(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		interrupt()
		<-request.Context().Done()
	}))
	t.Cleanup(silent.Close)
	shell := as(t, []byte("apiVersion: v1\nkind: Config\n"))
	shell.ctx = ctx
	shell.run("list", "-A", "--server", silent.URL).fails(t, cli.ExitFailed, "canceled")
}

// atQuestion is called when a question is printed.
type atQuestion func()

func (a atQuestion) Write(text []byte) (int, error) {
	if bytes.Contains(text, []byte("[y/N]")) {
		a()
	}
	return len(text), nil
}

// Red when an installation that took the name of the one that was shown is changed or removed (uid in the patch, and in the deletion).
func TestUninstallRemovesOnlyWhatItShows(t *testing.T) {
	seed, namespace := shop(t, "replaced")
	for _, flags := range [][]string{nil, {"--orphan"}, {"--skip-hooks"}} {
		made := given.Installation(namespace, "podinfo", "podinfo", "apps")
		expect.Create(t, seed, made)
		another := given.Installation(namespace, "podinfo", "podinfo", "apps")
		shell := on(t, "seed")
		shell.input = strings.NewReader("y\n")
		shell.notes = atQuestion(func() {
			expect.Delete(t, seed, made)
			expect.Create(t, seed, another)
		})
		got := shell.run(append([]string{"uninstall", "podinfo", "--cluster", "replaced"}, flags...)...)
		now := read(t, seed, namespace, "podinfo")
		if got.code == cli.ExitDone || now.UID != another.UID || now.ResourceVersion != another.ResourceVersion {
			t.Errorf("%q: exit code %d: %s: there is %s %v", flags, got.code, got.err, now.Spec.DeletionPolicy, now.Annotations)
		}
		expect.Delete(t, seed, now)
	}
}

// Red when the end of a neighbour's installation is printed, or that of an own one is not.
func TestStatusWatchesOneClusterOfANamespace(t *testing.T) {
	seed, _ := cluster(t, "watched")
	expect.Create(t, seed, world.Namespace("watchers"))
	var made []client.Object
	for _, name := range []string{"two", "one"} {
		offered(t, seed, client.ObjectKey{Namespace: "watchers", Name: "available-" + name})
		made = append(made, inState(t, seed, given.Installation("watchers", name+".prometheus", "prometheus", "monitoring",
			func(made *v1.AddonInstallation) { made.Spec.ClusterName = name }), ready, at("1.2.0")))
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := &printed{}
	tool := cli.NewTool(genericiooptions.IOStreams{In: strings.NewReader(""), Out: out, ErrOut: out})
	ended := make(chan int, 1)
	go func() {
		ended <- cli.Run(ctx, tool, []string{"--kubeconfig", on(t, "seed").kubeconfig, "status", "--cluster", "watchers/one", "--watch"}, verbs.All()...)
	}()
	out.until(t, "one.prometheus Ready")
	for _, one := range made {
		expect.Delete(t, seed, one)
	}
	out.until(t, "one.prometheus Gone\n")
	cancel()
	if code := <-ended; code != cli.ExitDone || strings.Contains(out.String(), "two.") {
		t.Errorf("exit code %d, printed %q", code, out.String())
	}
}
