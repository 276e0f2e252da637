package binaries

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Provide is Find, which first builds what the cache does not hold: minutes, once. Who asks meanwhile for the same waits.
func Provide(ctx context.Context, cache, name, release string) (string, error) {
	program, err := named(name, release)
	if err != nil {
		return "", err
	}
	target := program.Path(cache)
	if path, err := existing(target); err == nil {
		return path, nil
	}
	root, err := Root()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return "", fmt.Errorf("making the folder of %q: %w", name, err)
	}
	lock, err := os.Create(target + ".lock")
	if err != nil {
		return "", fmt.Errorf("locking the build of %q: %w", name, err)
	}
	defer lock.Close() // which lets go of the lock
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", fmt.Errorf("locking the build of %q: %w", name, err)
	}
	if path, err := existing(target); err == nil {
		return path, nil
	}
	if err := build(ctx, root, cache, program); err != nil {
		return "", fmt.Errorf("building %s %s: %w", program.Name, program.Release, err)
	}
	return target, nil
}

// prepare puts beside the program what it comes with, and makes the edited source. It returns what go build is told besides, and
// what removes the source again. What is beside is there before the program is: who finds the program finds all.
func prepare(ctx context.Context, folder string, program Program, beside string) ([]string, func(), error) {
	module, err := moduleFolder(ctx, folder, program.Upstream)
	if err != nil {
		return nil, nil, err
	}
	for _, copied := range program.Beside {
		if err := replaceWith(filepath.Join(beside, copied.To), filepath.Join(module, copied.From)); err != nil {
			return nil, nil, fmt.Errorf("copying %q of %s: %w", copied.From, program.Upstream, err)
		}
	}
	if program.Edit.File == "" {
		return nil, func() {}, nil
	}
	scratch, err := os.MkdirTemp(beside, "source-")
	if err != nil {
		return nil, nil, fmt.Errorf("making a folder for the source of %s: %w", program.Upstream, err)
	}
	remove := func() { _ = os.RemoveAll(scratch) }
	if err := program.edit(folder, module, scratch); err != nil {
		remove()
		return nil, nil, err
	}
	return []string{"-modfile", filepath.Join(scratch, "go.mod")}, remove, nil
}

// edit copies the module, makes the edit in the copy, and has a go.mod take the copy for the module: Go builds nothing that was changed
// in its own cache.
func (p Program) edit(folder, module, scratch string) error {
	source := filepath.Join(scratch, "source")
	if err := os.CopyFS(source, os.DirFS(module)); err != nil {
		return fmt.Errorf("copying the source of %s: %w", p.Upstream, err)
	}
	path := filepath.Join(source, p.Edit.File)
	content, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading the source of %s: %w", p.Upstream, err)
	}
	if found := bytes.Count(content, []byte(p.Edit.Old)); found != 1 {
		return fmt.Errorf("file %q of %s has the text to be replaced %d times", p.Edit.File, p.Upstream, found)
	}
	content = bytes.Replace(content, []byte(p.Edit.Old), []byte(p.Edit.New), 1)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return fmt.Errorf("writing the source of %s: %w", p.Upstream, err)
	}
	mod, err := os.ReadFile(filepath.Join(folder, "go.mod"))
	if err != nil {
		return fmt.Errorf("reading the go.mod of %s: %w", p.Upstream, err)
	}
	mod = fmt.Appendf(mod, "\nreplace %s => %s\n", p.Upstream, source)
	if err := os.WriteFile(filepath.Join(scratch, "go.mod"), mod, 0o600); err != nil {
		return fmt.Errorf("writing the go.mod of %s: %w", p.Upstream, err)
	}
	return replaceWith(filepath.Join(scratch, "go.sum"), filepath.Join(folder, "go.sum"))
}

// moduleFolder is where Go keeps the module, in the version that the go.mod of the folder asks for.
func moduleFolder(ctx context.Context, folder, module string) (string, error) {
	command := goCommand(ctx, folder, "mod", "download", "-json", module)
	output, err := command.Output()
	var answer struct{ Dir, Error string }
	if decoding := json.Unmarshal(output, &answer); err != nil || decoding != nil || answer.Dir == "" {
		return "", fmt.Errorf("downloading %s: %w %s", module, errors.Join(err, decoding), answer.Error)
	}
	return answer.Dir, nil
}

// replaceWith makes target a copy of the file or folder.
func replaceWith(target, original string) error {
	if err := os.RemoveAll(target); err != nil {
		return err
	}
	info, err := os.Stat(original)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return os.CopyFS(target, os.DirFS(original))
	}
	content, err := os.ReadFile(original)
	if err != nil {
		return err
	}
	return os.WriteFile(target, content, 0o600)
}
