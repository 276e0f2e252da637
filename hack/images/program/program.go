// Package program builds the programs of a Go module for images: static, and the same bytes on
// every machine that has the same release of Go.
package program

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/trellis-addons/trellis/hack/images/checkout"
)

// Program is one package main.
type Program struct {
	// Module and Path are the import paths of the module and of the package.
	Module, Path string
}

// Name is what the program, and its image, is called.
func (p Program) Name() string { return path.Base(p.Path) }

// plugin begins the names of programs for users' machines, which have no image.
const plugin = "kubectl-"

// List finds the programs below folder cmd of a module that have an image.
func List(ctx context.Context, module string) ([]Program, error) { return list(ctx, module, false) }

// Plugins finds the programs for users' machines.
func Plugins(ctx context.Context, module string) ([]Program, error) { return list(ctx, module, true) }

func list(ctx context.Context, module string, plugins bool) ([]Program, error) {
	if err := checkSettings(ctx, module); err != nil {
		return nil, err
	}
	output, err := ask(ctx, module, "list", "-json=Name,ImportPath,Module", "./cmd/...")
	if err != nil {
		return nil, err
	}
	var found []Program
	for packages := json.NewDecoder(bytes.NewReader(output)); ; {
		var one struct {
			Name, ImportPath string
			Module           struct{ Path string }
		}
		if err := packages.Decode(&one); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("listing programs in %q: %w", module, err)
		}
		if one.Name == "main" && strings.HasPrefix(path.Base(one.ImportPath), plugin) == plugins {
			found = append(found, Program{one.Module.Path, one.ImportPath})
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("no program in %q below cmd", module)
	}
	return found, nil
}

// Build makes the program for a platform, and gives its content. Module is the folder of go.mod.
func (p Program) Build(ctx context.Context, module string, platform v1.Platform, stamp checkout.Stamp) ([]byte, error) {
	folder, err := os.MkdirTemp("", "trellis-program-")
	if err != nil {
		return nil, fmt.Errorf("making a folder to build in: %w", err)
	}
	defer os.RemoveAll(folder)
	file := filepath.Join(folder, p.Name())
	command := exec.CommandContext(ctx, "go", append(p.arguments(stamp), "-o", file, p.Path)...)
	command.Dir, command.Env, command.Stderr = module, environment(platform), os.Stderr
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("building %s for %s: %w", p.Name(), platform, err)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading what was built: %w", err)
	}
	return content, nil
}

// arguments leave out all that a folder's path and a checkout's state would put into the program;
// what is to be known of the checkout is written by the linker.
func (p Program) arguments(stamp checkout.Stamp) []string {
	variable := "-X " + p.Module + "/pkg/base/buildinfo."
	flags := []string{
		"-s", "-w", variable + "version=" + stamp.Version, variable + "commit=" + stamp.Commit, variable + "date=" + stamp.RFC3339(),
	}
	return []string{"build", "-trimpath", "-buildvcs=false", "-ldflags=" + strings.Join(flags, " ")}
}

// Toolchain is the release of Go that a module's go.mod names, such as go1.26.8. It is an error when
// this very program is of another one, which makes other programs and packs them into other bytes.
func Toolchain(ctx context.Context, module string) (string, error) {
	output, err := ask(ctx, module, "mod", "edit", "-json")
	if err != nil {
		return "", err
	}
	var file struct{ Go, Toolchain string }
	if err := json.Unmarshal(output, &file); err != nil {
		return "", fmt.Errorf("reading go.mod in %q: %w", module, err)
	}
	named := cmp.Or(file.Toolchain, "go"+file.Go)
	if running := runtime.Version(); running != named {
		return "", fmt.Errorf("images are made by %s, and this is %s: install that one, or set GOTOOLCHAIN=%s to have it fetched",
			named, running, named)
	}
	return named, nil
}

// ask gives what the go command answers in a module.
func ask(ctx context.Context, module string, arguments ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, "go", arguments...)
	command.Dir, command.Env, command.Stderr = module, environment(v1.Platform{}), os.Stderr
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s in %q: %w", arguments[0], module, err)
	}
	return output, nil
}

// environment is ours, less what changes a program. An empty value would not do: Go would take the
// one that `go env -w` wrote.
func environment(platform v1.Platform) []string {
	set := []string{
		"GOTOOLCHAIN=" + runtime.Version(), "CGO_ENABLED=0", "GOFLAGS=-mod=readonly", "GOWORK=off", "GOFIPS140=off",
		"GOAMD64=v1", "GOARM64=v8.0",
	}
	if platform.OS != "" {
		set = append(set, "GOOS="+platform.OS, "GOARCH="+platform.Architecture)
	}
	ours := slices.DeleteFunc(os.Environ(), func(one string) bool { return strings.HasPrefix(one, experiments+"=") })
	return append(ours, set...)
}

// experiments is the variable that has no value for Go's defaults.
const experiments = "GOEXPERIMENT"

// checkSettings refuses settings of Go's that no environment takes back.
func checkSettings(ctx context.Context, module string) error {
	output, err := ask(ctx, module, "env", experiments)
	if err != nil {
		return err
	}
	if text := strings.TrimSpace(string(output)); text != "" {
		return fmt.Errorf("%s is %q in Go's settings, which makes other programs: take it back by go env -u %s", experiments, text, experiments)
	}
	return nil
}
