package archive

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/trellis-addons/trellis/pkg/fetch"
)

// Limits of inflation: deflate reaches 1032:1, charts and layers of text stay below 30:1.
const (
	ratioLimit     = 200
	ratioFreeBytes = 8 << 20
	// paddingLimit bounds the zero blocks that tar programs append.
	paddingLimit = 1 << 20
)

// Renaming maps an archive's name to one in the folder, which is checked too; keep false skips it.
type Renaming func(name string) (renamed string, keep bool, err error)

// Extract unpacks a gzipped tar archive into the folder.
func Extract(ctx context.Context, from io.Reader, into *Folder, rename Renaming) error {
	return Each(ctx, from, Gzip, into, func(entry *Entry) error {
		name, keep, err := rename(entry.Name)
		if err != nil || !keep {
			return err
		}
		return entry.Unpack(into, name)
	})
}

// Entry is the current entry of an archive.
type Entry struct {
	// Name is checked, without leading "./" or trailing slash.
	Name string

	header  *tar.Header
	content io.Reader
}

// IsDirectory reports whether the entry is a directory.
func (e *Entry) IsDirectory() bool { return e.header.Typeflag == tar.TypeDir }

// Rule is the reason why entries of that kind are refused; "" for regular files and directories.
func (e *Entry) Rule() string { return kindRule(e.header) }

// Unpack writes a file or directory into the folder under a name, which is checked.
func (e *Entry) Unpack(into *Folder, name string) error {
	if rule := e.Rule(); rule != "" {
		return Refused(e.header.Name, rule)
	}
	if e.IsDirectory() {
		return into.Directory(name)
	}
	return into.File(name, e.content)
}

// Each calls visit with the entries of a tar archive, in order, to unpack or skip them. All inflated bytes count for
// the limits of the folder, also skipped ones. Before it begins it waits for its turn.
func Each(ctx context.Context, from io.Reader, packing Packing, into *Folder, visit func(*Entry) error) error {
	end, err := into.space.Turn(ctx)
	if err != nil {
		return err
	}
	defer end()
	compressed := &tally{ctx: ctx, from: from}
	inflater, err := packing.open(compressed)
	if err != nil {
		return brokenArchive(err, fmt.Sprintf("it is no %s archive", packing))
	}
	defer inflater.Close()
	inflated := &guard{from: inflater, compressed: compressed, into: into}
	reader := tar.NewReader(inflated)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return padding(inflated)
		}
		if err != nil {
			return brokenArchive(err, "it is not a tar archive, or is damaged")
		}
		name := entryName(header)
		if header.Typeflag == tar.TypeXGlobalHeader || name == "" {
			continue
		}
		if err := CheckName(name); err != nil {
			return err
		}
		if err := visit(&Entry{Name: name, header: header, content: reader}); err != nil {
			return brokenArchive(err, "it is incomplete or damaged")
		}
	}
}

// entryName removes a leading "./" and a directory's trailing slash. "" is the top.
func entryName(header *tar.Header) string {
	name := strings.TrimPrefix(header.Name, "./")
	if header.Typeflag == tar.TypeDir {
		name = strings.TrimSuffix(name, "/")
	}
	if name == "." || name == "" && header.Typeflag == tar.TypeDir && header.Name != "/" {
		return ""
	}
	if name == "" {
		return header.Name
	}
	return name
}

func kindRule(header *tar.Header) string {
	for key := range header.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return "sparse files are refused"
		}
	}
	switch header.Typeflag {
	case tar.TypeReg, tar.TypeDir:
		return ""
	case tar.TypeSymlink, tar.TypeLink:
		return "links are refused"
	case tar.TypeChar, tar.TypeBlock, tar.TypeFifo:
		return "devices and pipes are refused"
	case tar.TypeGNUSparse:
		return "sparse files are refused"
	}
	return fmt.Sprintf("entries of type %q are refused", header.Typeflag)
}

// padding reads the rest after the end of the archive: only a few zeros are allowed.
func padding(from io.Reader) error {
	buffer := make([]byte, 32<<10)
	for total := 0; ; {
		count, err := from.Read(buffer)
		total += count
		for _, b := range buffer[:count] {
			if b != 0 {
				return brokenArchive(nil, "there is data after its end")
			}
		}
		if total > paddingLimit {
			return brokenArchive(nil, "there is data after its end")
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return brokenArchive(err, "there is data after its end")
		}
	}
}

// brokenArchive keeps errors of Trellis, and turns those of decoders into a refusal.
func brokenArchive(err error, rule string) error {
	var refusal *fetch.RefusedError
	var unavailable *fetch.UnavailableError
	var disk interface{ Timeout() bool } // *fs.PathError and similar
	switch {
	case errors.As(err, &refusal), errors.As(err, &unavailable), errors.As(err, &disk):
		return err
	}
	return &fetch.RefusedError{Subject: "the archive", Rule: rule}
}

// tally counts the bytes that are read of an archive, until the context ends: an archive can be long and inflate to
// nothing.
type tally struct {
	ctx   context.Context
	from  io.Reader
	count int64
}

func (t *tally) Read(into []byte) (int, error) {
	if t.ctx.Err() != nil {
		return 0, &fetch.UnavailableError{Subject: "the archive", Err: context.Cause(t.ctx)}
	}
	count, err := t.from.Read(into)
	t.count += int64(count)
	return count, err
}

type guard struct {
	from       io.Reader
	compressed *tally
	into       *Folder
	count      int64
}

func (g *guard) Read(into []byte) (int, error) {
	count, err := g.from.Read(into)
	g.count += int64(count)
	g.into.inflated += int64(count)
	if most := g.into.limits.Inflated; most > 0 && g.into.inflated > most {
		rule := fmt.Sprintf("it inflates to more than %d MiB, including unused files", most>>20)
		return 0, &fetch.RefusedError{Subject: "the archive", Rule: rule}
	}
	if g.count > ratioFreeBytes && g.count > ratioLimit*g.compressed.count {
		return 0, &fetch.RefusedError{
			Subject: "the archive", Rule: fmt.Sprintf("it inflates to more than %d times its size", ratioLimit),
		}
	}
	return count, err
}

// Packing is how an archive is compressed.
type Packing string

// The packings of charts and of image layers.
const (
	Gzip  Packing = "gzip"
	Zstd  Packing = "zstd"
	Plain Packing = "tar"
)

// windowLimit bounds the memory of zstd. Its levels up to 19 need 8 MiB.
const windowLimit = 16 << 20

func (p Packing) open(from io.Reader) (io.ReadCloser, error) {
	switch p {
	case Gzip:
		return gzip.NewReader(bufio.NewReader(from))
	case Zstd:
		decoder, err := zstd.NewReader(from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(windowLimit))
		if err != nil {
			return nil, err
		}
		return decoder.IOReadCloser(), nil
	}
	return io.NopCloser(from), nil
}
