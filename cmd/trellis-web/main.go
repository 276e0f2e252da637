// Command trellis-web shows catalogues, installations and sets of a platform in a browser. It has no rights of its own:
// it calls API servers and query endpoints with the token of the user who looks.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"

	"github.com/trellis-addons/trellis/pkg/base/buildinfo"
	"github.com/trellis-addons/trellis/pkg/web"
)

func main() {
	options, set := web.Options{}, flag.NewFlagSet("trellis-web", flag.ExitOnError)
	set.StringVar(&options.File, "config", "/etc/trellis-web/config.yaml", "file with the configuration, which is followed when it changes")
	set.StringVar(&options.Address, "bind-address", ":8080", "address that browsers, or a proxy in front, connect to")
	set.StringVar(&options.OwnAddress, "metrics-bind-address", ":8081", "address of /metrics and /healthz")
	version := set.Bool("version", false, "print version, commit and the commit's date, and exit")
	set.Usage = func() {
		set.SetOutput(os.Stdout)
		fmt.Println("Usage of trellis-web:")
		set.PrintDefaults()
	}
	_ = set.Parse(os.Args[1:]) // it exits
	if *version {
		fmt.Println("trellis-web", buildinfo.Read())
		return
	}
	options.Logger = logr.FromSlogHandler(slog.NewJSONHandler(os.Stderr, nil))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second interrupt ends the program at once
	if err := web.Run(ctx, options); err != nil {
		options.Logger.Error(err, "trellis-web ends")
		os.Exit(1)
	}
}
