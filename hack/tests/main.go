package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// ways are the first arguments, each with what it does; "" is that without one.
var ways = map[string]func(ctx context.Context, arguments []string) error{
	"": short, "long": long, "check": check, "names": names,
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
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(os.Stderr, "tests: interrupted; nothing is left running")
	default:
		fmt.Fprintln(os.Stderr, "tests:", err)
	}
	os.Exit(1)
}
