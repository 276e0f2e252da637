package download

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"time"

	"github.com/trellis-addons/trellis/test/binaries"
)

// Bounds of a download. The largest file is Kubernetes' API server, of about 130 MB.
const (
	mostBytes   = 1 << 30
	connectTime = 10 * time.Second
	silence     = 30 * time.Second
)

// otherWay says what to do instead; it ends errors that a retry may not mend.
const otherWay = "without DOWNLOAD=1 the program is compiled instead"

// SumError says that a file is not the one that its project published.
type SumError struct{ URL, Got, Want, Published string }

func (e *SumError) Error() string {
	return fmt.Sprintf("%s has checksum %s, but %s says %s: nothing of it was kept; %s", e.URL, e.Got, e.Published, e.Want, otherWay)
}

// UnreachableError says that a file could not be had.
type UnreachableError struct {
	URL string
	Err error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("downloading %s: %v; %s", e.URL, e.Err, otherWay)
}

func (e *UnreachableError) Unwrap() error { return e.Err }

// From downloads by a list, for binaries.Builder. It tells on out which program it compiles instead, and why.
func From(list string, out io.Writer) (func(context.Context, binaries.Program, string) (bool, error), error) {
	entries, err := read(list)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, program binaries.Program, file string) (bool, error) {
		for _, entry := range entries {
			if entry.Program != program.Name {
				continue
			}
			at := placeOf(program)
			sum := entry.Sums[at.key()]
			if sum == "" {
				fmt.Fprintf(out, "%s %s has no checksum in %s: compiling it\n", program.Name, program.Release, path.Base(list))
				return false, nil
			}
			fmt.Fprintf(out, "downloading %s\n", at.in(entry.URL))
			return true, fetch(ctx, entry, at, sum, file)
		}
		fmt.Fprintf(out, "%s %s is not in %s: compiling it\n", program.Name, program.Release, path.Base(list))
		return false, nil
	}, nil
}

// client follows redirects, as releases need them; what arrives is trusted by its checksum alone.
var client = &http.Client{Transport: &http.Transport{
	Proxy:                 http.ProxyFromEnvironment,
	DialContext:           (&net.Dialer{Timeout: connectTime}).DialContext,
	TLSHandshakeTimeout:   connectTime,
	ResponseHeaderTimeout: silence,
}}

// fetch verifies the whole file before anything of it is taken.
func fetch(ctx context.Context, entry Entry, at place, sum, file string) error {
	from := at.in(entry.URL)
	body, err := get(ctx, from)
	if err != nil {
		return err
	}
	defer body.Close()
	whole, err := os.CreateTemp(path.Dir(file), "download-")
	if err != nil {
		return fmt.Errorf("making a file for %s: %w", from, err)
	}
	defer os.Remove(whole.Name())
	defer whole.Close()
	digest, err := digestOf(sum)
	if err != nil {
		return fmt.Errorf("the checksum of %s in the list: %w", from, err)
	}
	size, err := io.Copy(io.MultiWriter(whole, digest), io.LimitReader(body, mostBytes+1))
	if err != nil {
		return &UnreachableError{from, err}
	}
	if size > mostBytes {
		return fmt.Errorf("%s has more than %d MiB; %s", from, mostBytes>>20, otherWay)
	}
	if got := hex.EncodeToString(digest.Sum(nil)); got != sum {
		return &SumError{from, got, sum, at.in(entry.Published)}
	}
	if _, err := whole.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("reading %s: %w", from, err)
	}
	if entry.Member == "" {
		return write(file, whole)
	}
	return unpack(whole, from, at.in(entry.Member), file)
}

func get(ctx context.Context, from string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, from, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("the list of downloads has a URL that is none: %w", err)
	}
	response, err := client.Do(request)
	if wrapped, isURL := errors.AsType[*url.Error](err); isURL {
		err = wrapped.Err // without the URL, which the message has already
	}
	if err != nil {
		return nil, &UnreachableError{from, err}
	}
	if response.StatusCode != http.StatusOK {
		_ = response.Body.Close()
		return nil, &UnreachableError{from, fmt.Errorf("the server answers %s", response.Status)}
	}
	return response.Body, nil
}

func digestOf(sum string) (hash.Hash, error) {
	switch len(sum) {
	case 2 * sha256.Size:
		return sha256.New(), nil
	case 2 * sha512.Size:
		return sha512.New(), nil
	}
	return nil, fmt.Errorf("%q is neither SHA-256 nor SHA-512 in hexadecimal digits", sum)
}

func unpack(archive io.Reader, from, member, file string) error {
	unzipped, err := gzip.NewReader(archive)
	if err != nil {
		return fmt.Errorf("unpacking %s: %w", from, err)
	}
	entries := tar.NewReader(unzipped)
	for {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("%s has no file %q; %s", from, member, otherWay)
		}
		if err != nil {
			return fmt.Errorf("unpacking %s: %w", from, err)
		}
		if header.Typeflag == tar.TypeReg && path.Clean(header.Name) == member {
			return write(file, io.LimitReader(entries, mostBytes))
		}
	}
}

func write(file string, content io.Reader) error {
	target, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		return fmt.Errorf("writing a downloaded program: %w", err)
	}
	_, err = io.Copy(target, content)
	if err := errors.Join(err, target.Close()); err != nil {
		return fmt.Errorf("writing a downloaded program: %w", err)
	}
	return nil
}
