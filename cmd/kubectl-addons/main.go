// Command kubectl-addons is `kubectl addons`, a plugin of kubectl.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/trellis-addons/trellis/cmd/wiring/renderers"
	"github.com/trellis-addons/trellis/cmd/wiring/verbs"
	"github.com/trellis-addons/trellis/pkg/cli"
	"github.com/trellis-addons/trellis/pkg/render/child"
)

func main() {
	child.Serve(renderers.All())
	klog.LogToStderr(false) // libraries log texts of others
	klog.SetOutput(io.Discard)
	log.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second interrupt ends the program at once, whatever it waits for
	code := cli.Run(ctx, cli.OnTerminal(), os.Args[1:], verbs.All()...)
	stop()
	os.Exit(code)
}
