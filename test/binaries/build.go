package binaries

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// CacheVariable names the environment variable that moves the cache folder out of the checkout.
const CacheVariable = "TRELLIS_CACHE"

// Cache is the folder of built programs: TRELLIS_CACHE, or .cache in the checkout.
func Cache() (string, error) {
	if folder := os.Getenv(CacheVariable); folder != "" {
		return filepath.Abs(folder)
	}
	root, err := Root()
	if err != nil {
		return "", err
	}
	return filepath.Join(root, ".cache"), nil
}

// Root is the checkout's top folder: the nearest one upward that holds PROJECT.
func Root() (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the working folder: %w", err)
	}
	for dir := folder; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "PROJECT")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no file PROJECT in %q or above: run this inside a checkout of Trellis", folder)
		}
	}
}

// Build makes every program that the cache does not hold yet, but for those on demand, and reports each in a line on progress.
func Build(ctx context.Context, root, cache string, progress io.Writer) error {
	programs := slices.DeleteFunc(Programs(), func(p Program) bool { return p.OnDemand })
	for i, program := range programs {
		label := fmt.Sprintf("[%d/%d] %s %s", i+1, len(programs), program.Name, program.Release)
		if _, err := os.Stat(program.Path(cache)); err == nil {
			fmt.Fprintf(progress, "%s: built before\n", label)
			continue
		}
		fmt.Fprintf(progress, "%s: building from source (minutes, once) ...\n", label)
		begin := time.Now()
		if err := build(ctx, root, cache, program); err != nil {
			return fmt.Errorf("building %s %s: %w", program.Name, program.Release, err)
		}
		fmt.Fprintf(progress, "%s: done in %s\n", label, time.Since(begin).Round(time.Second))
	}
	return nil
}

// build writes to a temporary name first, so that an interrupted build never looks like a finished one.
func build(ctx context.Context, root, cache string, program Program) error {
	target := program.Path(cache)
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	partial := target + ".partial"
	defer os.Remove(partial)
	folder := filepath.Join(root, "hack", "controlplanes", program.Module)
	arguments := []string{"build", "-trimpath", "-ldflags", program.linkFlags(), "-o", partial}
	if program.Edit.File != "" || len(program.Beside) > 0 {
		edited, remove, err := prepare(ctx, folder, program, filepath.Dir(target))
		if err != nil {
			return err
		}
		defer remove()
		arguments = append(arguments, edited...)
	}
	command := goCommand(ctx, folder, append(arguments, program.Package)...)
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	if err := command.Run(); err != nil {
		return fmt.Errorf("go build in %q: %w\n%s", command.Dir, err, lastLines(output.String(), 20))
	}
	return os.Rename(partial, target)
}

func goCommand(ctx context.Context, folder string, arguments ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, "go", arguments...)
	command.Dir = folder
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false", "GOWORK=off")
	return command
}

// linkFlags strips symbols, and stamps the version as the upstream release build does: an API server without it would
// answer /version with v0.0.0-master, and helm refuse charts that ask for a Kubernetes above 1.20.
func (p Program) linkFlags() string {
	flags := []string{"-s", "-w"}
	for _, stamp := range p.stamps() {
		flags = append(flags, "-X", stamp)
	}
	return strings.Join(flags, " ")
}

func (p Program) stamps() []string {
	switch p.Upstream {
	case "k8s.io/kubernetes":
		const at = "k8s.io/component-base/version."
		parts := strings.SplitN(p.Release, ".", 3)
		return []string{at + "gitVersion=v" + p.Release, at + "gitMajor=" + parts[0], at + "gitMinor=" + parts[1], at + "gitTreeState=clean"}
	case "sigs.k8s.io/cluster-api":
		return []string{"sigs.k8s.io/cluster-api/version.gitVersion=v" + p.Release}
	case "helm.sh/helm/v3":
		const at = "helm.sh/helm/v3/"
		return []string{
			at + "internal/version.version=v" + p.Release, at + "internal/version.metadata=", at + "internal/version.gitTreeState=clean",
			at + "pkg/chartutil.k8sVersionMajor=1", at + "pkg/chartutil.k8sVersionMinor=" + helmKubernetes,
			at + "pkg/lint/rules.k8sVersionMajor=1", at + "pkg/lint/rules.k8sVersionMinor=" + helmKubernetes,
		}
	}
	return nil
}

func minor(release string) string {
	return release[:strings.LastIndex(release, ".")]
}

func existing(path string) (string, error) {
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("program %q is not built: run `make binaries`", filepath.Base(path))
	}
	return path, nil
}

func lastLines(text string, most int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-most):], "\n")
}
