package binaries

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// ownKept is how many sets of built programs the cache keeps: those that were asked for last.
const ownKept = 10

// BuildOwn puts programs of a checkout of Trellis into a folder: static, as images have them, so that they run in a
// container's root. The rest are arguments of go build: flags, each with its value in one argument or in two, and
// packages, of which PATTERN/... means those with a file main.go. What was built before of the same content with the
// same flags and the same Go is taken from the cache.
func BuildOwn(ctx context.Context, root, into string, rest ...string) error {
	return ShowOwn(ctx, nil, root, into, rest...)
}

// ShowOwn is BuildOwn, which shows the progress of what it compiles; where out is nil, it shows nothing.
func ShowOwn(ctx context.Context, out io.Writer, root, into string, rest ...string) error {
	cache, err := Cache()
	if err != nil {
		return err
	}
	o, err := newOwn(ctx, root, rest)
	if err != nil {
		return err
	}
	o.out = out
	kept, unlock, err := o.lock(filepath.Join(cache, "own"))
	if err != nil {
		return err
	}
	defer unlock()
	if err := o.build(ctx, kept); err != nil {
		return err
	}
	removeOldest(filepath.Dir(kept), ownKept)
	return o.putInto(into, kept)
}

// own is what is built of one module.
type own struct {
	root            string
	flags, packages []string
	// key is the same for the same content, flags and Go.
	key string
	// out takes progress, where it is set.
	out io.Writer
}

func newOwn(ctx context.Context, root string, rest []string) (own, error) {
	flags, packages, err := ownPackages(root, rest)
	if err != nil {
		return own{}, err
	}
	key, err := ownKey(ctx, root, flags, packages)
	return own{root: root, flags: flags, packages: packages, key: key}, err
}

// lock gives the folder of the built programs, which is this process's until unlock is called.
func (o own) lock(folder string) (kept string, unlock func(), err error) {
	kept = filepath.Join(folder, o.key)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", nil, fmt.Errorf("making the folder of built programs: %w", err)
	}
	lock, err := lockFile(kept + ".lock")
	if err != nil {
		return "", nil, fmt.Errorf("locking programs of %q: %w", o.root, err)
	}
	return kept, func() { _ = lock.Close() }, nil
}

// name is the file name of the program.
func (o own) name(program string) string { return filepath.Base(filepath.Join(o.root, program)) }

// ownPackages tells flags and packages apart, and lists the packages of a pattern.
func ownPackages(root string, rest []string) (flags, packages []string, err error) {
	for len(rest) > 0 && strings.HasPrefix(rest[0], "-") {
		count := 2
		if strings.Contains(rest[0], "=") {
			count = 1
		}
		flags, rest = append(flags, rest[:min(count, len(rest))]...), rest[min(count, len(rest)):]
	}
	for _, one := range rest {
		folder, isPattern := strings.CutSuffix(one, "/...")
		if !isPattern {
			packages = append(packages, one)
			continue
		}
		found, err := filepath.Glob(filepath.Join(root, folder, "*", "main.go"))
		if err != nil || len(found) == 0 {
			return nil, nil, errors.Join(fmt.Errorf("no program below %q in %q", folder, root), err)
		}
		for _, path := range found {
			packages = append(packages, folder+"/"+filepath.Base(filepath.Dir(path)))
		}
	}
	return flags, packages, nil
}

// ownKey is the same for the same flags, Go, and files of the checkout that a program can be made of. Versions and
// sums of modules are in its files too. All files are read: that takes less time than asking Go which ones a program
// has. Those of tools count where one of the packages is a tool.
func ownKey(ctx context.Context, root string, flags, packages []string) (string, error) {
	command := ownCommand(ctx, root, "env", "GOVERSION", "GOFLAGS", "GOOS", "GOARCH", "GOAMD64", "GOEXPERIMENT")
	environment, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("asking Go what it builds for: %w", err)
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%q\n%s\n", flags, environment)
	withTools := slices.ContainsFunc(packages, func(program string) bool { return strings.HasPrefix(program, "./hack/") })
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path == root:
			return nil
		case !isInPrograms(path, root) && (!withTools || path != filepath.Join(root, "hack")):
			if entry.IsDir() {
				return filepath.SkipDir
			}
			return nil
		case !entry.Type().IsRegular():
			return nil
		}
		return addFile(sum, root, path)
	})
	if err != nil {
		return "", fmt.Errorf("reading the files of %q: %w", root, err)
	}
	return hex.EncodeToString(sum.Sum(nil)[:12]), nil
}

// isInPrograms is false for what Go ignores, what is built, tests, pages, and tools of the checkout.
func isInPrograms(path, root string) bool {
	name := filepath.Base(path)
	switch {
	case strings.HasPrefix(name, "."), strings.HasPrefix(name, "_"):
		return false
	case strings.HasSuffix(name, "_test.go"), strings.HasSuffix(name, ".md"):
		return false
	}
	return path != filepath.Join(root, "bin") && path != filepath.Join(root, "docs") && path != filepath.Join(root, "hack")
}

func addFile(sum io.Writer, root, path string) error {
	name, err := filepath.Rel(root, path)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(sum, "%q %d\n%s", name, len(content), content)
	return err
}

func ownCommand(ctx context.Context, root string, arguments ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, "go", arguments...)
	Interruptible(command)
	command.Dir, command.Env = root, append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	return command
}

// build makes the programs that the folder does not have, in a folder of their own first: an interrupted build
// leaves none.
func (o own) build(ctx context.Context, kept string) error {
	if err := os.MkdirAll(kept, 0o755); err != nil {
		return err
	}
	now := time.Now()
	if err := os.Chtimes(kept, now, now); err != nil { // they were asked for now
		return err
	}
	missing := slices.DeleteFunc(slices.Clone(o.packages), func(program string) bool {
		_, err := os.Stat(filepath.Join(kept, o.name(program)))
		return err == nil
	})
	if len(missing) == 0 {
		return nil
	}
	begun, err := os.MkdirTemp(kept, ".begun-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(begun)
	if err := o.compile(ctx, begun+string(filepath.Separator), missing); err != nil {
		return fmt.Errorf("building programs of %q: %w", o.root, err)
	}
	for _, program := range missing {
		if err := os.Rename(filepath.Join(begun, o.name(program)), filepath.Join(kept, o.name(program))); err != nil {
			return err
		}
	}
	return nil
}

// compile puts programs into a folder.
func (o own) compile(ctx context.Context, into string, programs []string) error {
	flags := append([]string{"-trimpath", "-buildvcs=false"}, o.flags...)
	build := slices.Concat([]string{"build", "-o", into}, flags, programs)
	if o.out == nil {
		output, err := ownCommand(ctx, o.root, build...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w\n%s", err, output)
		}
		return nil
	}
	names := make([]string, len(programs))
	for i, program := range programs {
		names[i] = strings.TrimPrefix(program, "./")
	}
	return Compile(ctx, o.out, Compilation{
		Names: names, Packages: programs, Flags: flags, Build: slices.Insert(build, 1, "-v"),
		Command: func(ctx context.Context, arguments ...string) *exec.Cmd { return ownCommand(ctx, o.root, arguments...) },
	})
}

// putInto links the programs, or copies them to another file system.
func (o own) putInto(into, kept string) error {
	if err := os.MkdirAll(into, 0o755); err != nil {
		return err
	}
	for _, program := range o.packages {
		from, to := filepath.Join(kept, o.name(program)), filepath.Join(into, o.name(program))
		if err := os.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if os.Link(from, to) == nil {
			continue
		}
		if err := copyProgram(from, to); err != nil {
			return err
		}
	}
	return nil
}

func copyProgram(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}
