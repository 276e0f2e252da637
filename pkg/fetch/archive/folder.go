package archive

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/fetch"
)

// Limits of one unpacked artifact. Zero means no limit.
type Limits struct {
	// Unpacked is the sum of all files, File the largest single one, in bytes.
	Unpacked, File int64
	// Inflated is the sum of all bytes that its archives inflate to, with those that are skipped.
	Inflated int64
	// Entries counts files and directories, including implied ones.
	Entries int
}

// Defaults are the limits of docs/spec/addoncatalogue.md.
var Defaults = Limits{Unpacked: 500 << 20, Inflated: 2 << 30, Entries: 20_000}

// Folder writes files into a directory within limits and the context's space, and collects their digests.
type Folder struct {
	root     *os.Root
	limits   Limits
	space    fetch.Space
	written  int64
	inflated int64
	known    map[string]bool // true: a file
	lines    []string
}

// OpenFolder opens an existing, empty directory for writing.
func OpenFolder(ctx context.Context, directory string, limits Limits) (*Folder, error) {
	root, err := os.OpenRoot(directory)
	if err != nil {
		return nil, fmt.Errorf("opening the folder for unpacked content: %w", err)
	}
	return &Folder{root: root, limits: limits, space: fetch.SpaceOf(ctx), known: map[string]bool{}}, nil
}

// Close closes the folder.
func (f *Folder) Close() { _ = f.root.Close() }

// Directory creates a directory and its parents. It may exist already.
func (f *Folder) Directory(name string) error {
	if err := CheckName(name); err != nil || f.space.Keeps != nil { // then only stored files create their folders
		return err
	}
	return f.directory(name)
}

func (f *Folder) directory(name string) error {
	if name == "." || name == "" {
		return nil
	}
	if isFile, ok := f.known[name]; ok {
		if isFile {
			return Refused(name, "it is both a file and a folder")
		}
		return nil
	}
	if err := f.directory(path.Dir(name)); err != nil {
		return err
	}
	if err := f.count(name, false); err != nil {
		return err
	}
	return f.root.Mkdir(name, 0o755)
}

// File writes a file and its parents, unless the space excludes it. It refuses a duplicate name.
func (f *Folder) File(name string, content io.Reader) error {
	return f.Write(name, func(into io.Writer) error {
		_, err := io.Copy(into, content)
		return err
	})
}

// Write is File for pushed content. Beyond a limit, write gets the refusal as error.
func (f *Folder) Write(name string, write func(io.Writer) error) error {
	if err := CheckName(name); err != nil {
		return err
	}
	if f.space.Keeps != nil && !f.space.Keeps(name) {
		return nil
	}
	if _, ok := f.known[name]; ok {
		return Refused(name, "the name occurs twice")
	}
	if err := f.directory(path.Dir(name)); err != nil {
		return err
	}
	if err := f.count(name, true); err != nil {
		return err
	}
	file, err := f.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	hasher := sha256.New()
	err = write(&counter{folder: f, name: name, to: io.MultiWriter(file, hasher)})
	f.lines = append(f.lines, fmt.Sprintf("%q file %x\n", name, hasher.Sum(nil)))
	return errors.Join(err, file.Close())
}

func (f *Folder) count(name string, isFile bool) error {
	if f.limits.Entries > 0 && len(f.known) >= f.limits.Entries {
		return Refused(name, fmt.Sprintf("there are more than %d files and folders", f.limits.Entries))
	}
	f.known[name] = isFile
	return f.space.Reserve(fetch.EntryCost)
}

// Has reports whether a file of that name was written.
func (f *Folder) Has(name string) bool { return f.known[name] }

// Digest is "sha256:<hex>" over the sorted names and contents of all files. Order, packing, modes,
// times and empty directories don't matter.
func (f *Folder) Digest() string {
	hasher := sha256.New()
	for _, line := range slices.Sorted(slices.Values(f.lines)) { // all together may have 50 MiB
		_, _ = io.WriteString(hasher, line)
	}
	return fmt.Sprintf("sha256:%x", hasher.Sum(nil))
}

type counter struct {
	folder *Folder
	name   string
	size   int64
	to     io.Writer
}

// Write counts before it writes, so that nothing beyond a limit reaches the disk.
func (c *counter) Write(bytes []byte) (int, error) {
	limits := c.folder.limits
	c.size += int64(len(bytes))
	c.folder.written += int64(len(bytes))
	if limits.File > 0 && c.size > limits.File {
		return 0, Refused(c.name, fmt.Sprintf("the file is larger than %d MiB", limits.File>>20))
	}
	if limits.Unpacked > 0 && c.folder.written > limits.Unpacked {
		return 0, Refused(c.name, fmt.Sprintf("the content is larger than %d MiB unpacked", limits.Unpacked>>20))
	}
	if err := c.folder.space.Reserve(int64(len(bytes))); err != nil {
		return 0, err
	}
	return c.to.Write(bytes)
}

// Download is a file that is removed when it is closed or the process ends.
type Download struct {
	File  *os.File
	space fetch.Space
	size  int64
}

// Nameless creates a file for a download, within the context's space.
func Nameless(ctx context.Context, directory string) (*Download, error) {
	file, err := os.CreateTemp(directory, ".download-*")
	if err != nil {
		return nil, fmt.Errorf("creating file for download: %w", err)
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &Download{File: file, space: fetch.SpaceOf(ctx)}, nil
}

// Write reserves the space of bytes before it writes them.
func (d *Download) Write(bytes []byte) (int, error) {
	if err := d.space.Reserve(int64(len(bytes))); err != nil {
		return 0, err
	}
	d.size += int64(len(bytes))
	return d.File.Write(bytes)
}

// Close removes the file, and returns its space.
func (d *Download) Close() error {
	return errors.Join(d.File.Close(), d.space.Reserve(-d.size))
}

// Limits of names: those of Linux file systems, and a depth above that of sensible trees.
const (
	componentLimit = 255
	nameLimit      = 1024
	depthLimit     = 100
)

// CheckName checks a slash-separated relative name. It cleans nothing: a name has one spelling.
func CheckName(name string) error {
	if rule := NameRule(name); rule != "" {
		return Refused(name, rule)
	}
	return nil
}

// NameRule returns the rule that a name breaks, or "".
func NameRule(name string) string {
	switch {
	case name == "":
		return "the name is empty"
	case len(name) > nameLimit:
		return fmt.Sprintf("the name is longer than %d bytes", nameLimit)
	case !utf8.ValidString(name):
		return "the name is not UTF-8"
	case strings.HasPrefix(name, "/"):
		return "the name is absolute"
	case strings.Contains(name, `\`):
		return "the name has a backslash"
	case strings.ContainsFunc(name, unicode.IsControl):
		return "the name has a control character"
	case len(name) > 1 && name[1] == ':':
		return "the name has a drive letter"
	case strings.Count(name, "/") >= depthLimit:
		return fmt.Sprintf("it is deeper than %d folders", depthLimit)
	}
	for component := range strings.SplitSeq(name, "/") {
		switch {
		case component == "" || component == ".":
			return "the name has an empty component"
		case component == "..":
			return "the name leads out of its folder"
		case len(component) > componentLimit:
			return fmt.Sprintf("the name has a component longer than %d bytes", componentLimit)
		}
	}
	return ""
}

// CleanPath brings a reference's path into the spelling of CheckName: "" is the top.
func CleanPath(given string) (string, error) {
	trimmed := strings.TrimSuffix(given, "/")
	for strings.HasPrefix(trimmed, "./") {
		trimmed = strings.TrimPrefix(trimmed, "./")
	}
	if trimmed == "." || trimmed == "" && !strings.HasPrefix(given, "/") {
		return "", nil
	}
	if err := CheckName(trimmed); err != nil {
		return "", err
	}
	return path.Clean(trimmed), nil
}

// Refused returns the error for a path that breaks a rule.
func Refused(name, rule string) error {
	const shown = 256
	return &fetch.RefusedError{Subject: fmt.Sprintf("path %q", text.Cut(name, shown)), Rule: rule}
}
