package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trellis-addons/trellis/hack/images/output"
)

// What is edited while images are made is in no image under the commit's name: the go command
// edits the checkout here, before it builds. Red when the build is given out, or when it is not named why it is not.
func TestACheckoutThatChangesMeanwhileIsRefused(t *testing.T) {
	module := t.TempDir()
	if err := writeTiny(module); err != nil {
		t.Fatal(err)
	}
	command, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\nif [ \"$1\" = build ]; then echo '// Edited.' >>'%s'; fi\nexec '%s' \"$@\"\n",
		filepath.Join(module, "cmd/wiring/not.go"), command)
	if err := os.WriteFile(filepath.Join(folder, "go"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", folder+string(filepath.ListSeparator)+os.Getenv("PATH"))
	_, err = build(t.Context(), options{module: module, platforms: "linux/amd64", version: "v1.2.3"})
	if err == nil || !strings.Contains(err.Error(), "the checkout was 1.2.3 of") || !strings.Contains(err.Error(), "1.2.3-dirty") {
		t.Errorf("a checkout that was edited: %v", err)
	}
}

// Red when a registry that can't be pushed to is found out after the build: without a checkout, none begins.
func TestAWrongRegistryIsRefusedFirst(t *testing.T) {
	asked := options{module: t.TempDir(), platforms: platforms, registry: output.Registry{Path: "https://registry.example.com/trellis"}}
	if _, err := build(t.Context(), asked); err == nil || !strings.Contains(err.Error(), `leave out "https://"`) {
		t.Errorf("got %v", err)
	}
}
