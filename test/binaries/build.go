package binaries

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// CompileFlags are those of every package, here and of the product (see the Makefile): with equal flags and equal versions,
// what is compiled for one program serves the next.
const CompileFlags = "-trimpath -buildvcs=false"

// Builder builds what the cache does not hold yet.
type Builder struct {
	// Root is the checkout, Cache the folder of built programs.
	Root, Cache string
	// Out takes lines of progress.
	Out io.Writer
	// Download, where set, gets a program from its project's own release into a file. It returns false for one that it
	// can't verify, which is compiled.
	Download func(ctx context.Context, program Program, file string) (bool, error)
}

// Build makes the programs of these groups. Checkouts that share the cache wait for each other.
func (b Builder) Build(ctx context.Context, needs ...Need) error {
	wanted := slices.DeleteFunc(Programs(), func(p Program) bool { return !slices.Contains(needs, p.Need) })
	if err := os.MkdirAll(filepath.Join(b.Cache, "controlplanes"), 0o755); err != nil {
		return fmt.Errorf("making the cache folder (set %s to another one): %w", CacheVariable, err)
	}
	lock, err := os.Create(filepath.Join(b.Cache, "controlplanes.lock"))
	if err != nil {
		return fmt.Errorf("locking the cache folder (set %s to another one): %w", CacheVariable, err)
	}
	defer lock.Close() // this unlocks it
	if err := b.wait(lock); err != nil {
		return err
	}
	missing, err := b.missing(wanted)
	if err != nil {
		return err
	}
	if len(missing) > 0 && b.Download != nil {
		if missing, err = b.download(ctx, missing); err != nil {
			return err
		}
	}
	for _, group := range together(missing) {
		if err := b.compile(ctx, group); err != nil {
			return err
		}
	}
	return keepUsed(b.Cache, wanted)
}

func (b Builder) wait(lock *os.File) error {
	if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
		return nil
	}
	fmt.Fprintf(b.Out, "another checkout builds into %s: waiting for it ...\n", b.Cache)
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("locking the cache folder %q: %w", b.Cache, err)
	}
	return nil
}

func (b Builder) missing(wanted []Program) ([]Program, error) {
	var missing []Program
	for _, program := range wanted {
		path, err := program.Path(b.Cache)
		if err != nil {
			return nil, err
		}
		if _, err := os.Stat(path); err != nil {
			missing = append(missing, program)
		}
	}
	return missing, nil
}

// download returns the programs that are still missing.
func (b Builder) download(ctx context.Context, missing []Program) ([]Program, error) {
	var left []Program
	for _, program := range missing {
		got, err := b.into(program, func(partial string) (bool, error) { return b.Download(ctx, program, partial) })
		if err != nil {
			return nil, err
		}
		if !got {
			left = append(left, program)
		}
	}
	return left, nil
}

// into has a program written under a temporary name, so that an interrupted build never looks like a finished one.
func (b Builder) into(program Program, write func(partial string) (bool, error)) (bool, error) {
	path, err := program.Path(b.Cache)
	if err != nil {
		return false, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return false, fmt.Errorf("making the folder of %s: %w", program.Name, err)
	}
	partial := path + ".partial"
	defer os.Remove(partial)
	written, err := write(partial)
	if err != nil || !written {
		return false, err
	}
	return true, os.Rename(partial, path)
}

// together are programs that one `go build` makes: those of one module whose source is not edited. It compiles what they
// share once, and links one while it compiles for the next.
func together(programs []Program) [][]Program {
	var groups [][]Program
	for _, program := range programs {
		last := len(groups) - 1
		if last >= 0 && groups[last][0].Module == program.Module && groups[last][0].plain() && program.plain() {
			groups[last] = append(groups[last], program)
			continue
		}
		groups = append(groups, []Program{program})
	}
	return groups
}

// plain programs are built from their module as it is.
func (p Program) plain() bool { return p.Edit.File == "" && len(p.Extra) == 0 }

func (b Builder) compile(ctx context.Context, programs []Program) error {
	first := programs[0]
	module := filepath.Join(b.Root, "hack", "controlplanes", first.Module)
	made, err := os.MkdirTemp(filepath.Join(b.Cache, "controlplanes"), "building-")
	if err != nil {
		return fmt.Errorf("making a folder for %s: %w", first.Name, err)
	}
	defer os.RemoveAll(made)
	var further []string
	if !first.plain() {
		path, err := first.Path(b.Cache)
		if err != nil {
			return err
		}
		edited, remove, err := prepare(ctx, module, first, filepath.Dir(path))
		if err != nil {
			return err
		}
		defer remove()
		further = edited
	}
	if err := Compile(ctx, b.Out, compilationOf(module, made, programs, further)); err != nil {
		return err
	}
	for _, program := range programs {
		_, err := b.into(program, func(partial string) (bool, error) {
			return true, os.Rename(filepath.Join(made, program.executable()), partial)
		})
		if err != nil {
			return fmt.Errorf("keeping %s: %w", program.Name, err)
		}
	}
	return nil
}

// executable is the name that `go build` gives to the program: the last element of its import path that is no version.
func (p Program) executable() string {
	elements := strings.Split(p.Package, "/")
	last := elements[len(elements)-1]
	if len(last) > 1 && last[0] == 'v' && strings.Trim(last[1:], "0123456789") == "" {
		return elements[len(elements)-2]
	}
	return last
}

func goCommand(ctx context.Context, folder string, arguments ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, "go", arguments...)
	Interruptible(command)
	command.Dir = folder
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS="+CompileFlags, "GOWORK=off")
	return command
}

// linkFlags strip symbols, and stamp the version as the upstream release build does: an API server without it would
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
