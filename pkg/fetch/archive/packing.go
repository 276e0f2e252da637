package archive

import (
	"bufio"
	"compress/gzip"
	"io"

	"github.com/klauspost/compress/zstd"
)

// Packing is how an archive is compressed.
type Packing string

// The packings of charts and of image layers.
const (
	Gzip  Packing = "gzip"
	Zstd  Packing = "zstd"
	Plain Packing = "tar"
)

// windowLimit is how far zstd may look back, which is memory. Its levels up to 19 need 8 MiB.
const windowLimit = 16 << 20

// open gives the bytes of the tar.
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
