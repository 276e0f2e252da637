package binaries

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// prepare copies beside the program what it comes with, and makes the edited source. It returns the further arguments of go
// build, and a function that removes the source. The copies are there before the program is, so the program is never without.
func prepare(ctx context.Context, folder string, program Program, beside string) ([]string, func(), error) {
	module, err := moduleFolder(ctx, folder, program.Upstream)
	if err != nil {
		return nil, nil, err
	}
	if err := os.MkdirAll(beside, 0o755); err != nil {
		return nil, nil, fmt.Errorf("making the folder of %s: %w", program.Name, err)
	}
	for _, copied := range program.Extra {
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

// edit copies the module, makes the edit in the copy, and writes a go.mod that replaces the module by the copy: Go refuses to
// build what was changed in its own cache.
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
