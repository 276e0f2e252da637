// Command cert-manager runs the controllers of one of cert-manager's programs, "controller" or "cainjector", without leader election,
// metrics and ACME. Upstream's own commands are modules that can't be required from outside of its repository; all that they run is in
// the module that can.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

func main() {
	log.SetLogger(zap.New())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(log.IntoContext(ctx, ctrl.Log), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "cert-manager:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("use: cert-manager controller|cainjector KUBECONFIG")

func run(ctx context.Context, arguments []string) error {
	if len(arguments) != 2 {
		return errUsage
	}
	switch arguments[0] {
	case "controller":
		return runController(ctx, arguments[1])
	case "cainjector":
		return runInjector(ctx, arguments[1])
	}
	return errUsage
}
