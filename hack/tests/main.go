package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// ways maps the first argument to what it does; "" is the default.
var ways = map[string]func(ctx context.Context, arguments []string) error{
	"": runShort, "long": runLong, "check": check, "names": names,
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	way, arguments := "", os.Args[1:]
	if len(arguments) > 0 && ways[arguments[0]] != nil {
		way, arguments = arguments[0], arguments[1:]
	}
	err := ways[way](ctx, arguments)
	switch {
	case err == nil:
		return
	case ctx.Err() != nil: // what was interrupted may have another error
		fmt.Fprintln(os.Stderr, "tests: interrupted; nothing is left running")
	default:
		fmt.Fprintln(os.Stderr, "tests:", err)
	}
	os.Exit(1)
}
