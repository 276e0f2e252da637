//go:build linux && (amd64 || arm64)

// Command enter becomes a container's program. Its one argument is an entry.Container as JSON.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/trellis-addons/trellis/test/pod/entry"
)

var errArguments = errors.New("it takes one argument, a container as JSON")

func main() {
	if err := become(); err != nil {
		fmt.Fprintln(os.Stderr, "entering the container:", err)
		os.Exit(1)
	}
}

func become() error {
	if len(os.Args) != 2 {
		return errArguments
	}
	var container entry.Container
	if err := json.Unmarshal([]byte(os.Args[1]), &container); err != nil {
		return fmt.Errorf("reading the argument: %w", err)
	}
	return container.Become()
}
