package cli

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/trellis-addons/trellis/pkg/serve/documents"
)

// Input is the argument that means the standard input, and InputName the file that problems of it name.
const (
	Input     = "-"
	InputName = "stdin"
)

const contentHint = "name a file, the folder that spec.git.path names, or - for standard input"

// Content reads the add-ons of a file, of the input, or of a folder as catalogues in git read it. Names of files are
// relative to a folder. Errors: *documents.InvalidError; ExitUsage if there is nothing to read.
func (t *Tool) Content(ctx context.Context, path string) (*documents.Content, error) {
	content, err := t.content(ctx, path)
	if _, isInvalid := errors.AsType[*documents.InvalidError](err); isInvalid || ctx.Err() != nil {
		return nil, cmp.Or(err, ctx.Err())
	}
	if of, isPath := errors.AsType[*fs.PathError](err); isPath {
		return nil, Fail(ExitUsage, contentHint, "%q can't be read: %w", of.Path, of.Err)
	}
	if err != nil {
		return nil, Fail(ExitUsage, contentHint, "%q can't be read: %w", path, err)
	}
	if len(content.Addons) == 0 && len(content.Objects) == 0 {
		return nil, Fail(ExitUsage, contentHint, "%q has no AddonCatalogue and no list of add-ons in a file that ends in .yaml", path)
	}
	return content, nil
}

// Invalid explains the error of files that are wrong; other errors stay as they are.
func Invalid(err error) error {
	if _, isInvalid := errors.AsType[*documents.InvalidError](err); isInvalid {
		return Fail(ExitUsage, "`kubectl addons catalogue lint` lists all problems", "the files are wrong: %w", err)
	}
	return err
}

func (t *Tool) content(ctx context.Context, path string) (*documents.Content, error) {
	if path == Input {
		return readFile(ctx, InputName, t.In, 0)
	}
	found, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if found.IsDir() {
		return documents.Read(ctx, os.DirFS(path))
	}
	opened, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = opened.Close() }()
	return readFile(ctx, filepath.ToSlash(path), opened, found.Size())
}

// readFile reads a file, of which the size in bytes may be unknown.
func readFile(ctx context.Context, name string, from io.Reader, size int64) (*documents.Content, error) {
	content, err := io.ReadAll(io.LimitReader(from, documents.FileLimit+1))
	if err != nil {
		return nil, err
	}
	return documents.ReadFile(ctx, name, max(size, int64(len(content))), content)
}
