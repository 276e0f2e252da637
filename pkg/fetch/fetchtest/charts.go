package fetchtest

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Charts is a Helm repository.
type Charts struct {
	*Server

	mu      sync.Mutex
	files   map[string][]byte
	entries map[string][]string // lines of the index by chart
	etag    string
}

// ServeCharts starts a Helm repository behind wrappers, the first one outermost.
func ServeCharts(t testing.TB, wrappers ...func(http.Handler) http.Handler) *Charts {
	t.Helper()
	charts := &Charts{files: map[string][]byte{}, entries: map[string][]string{}}
	var handler http.Handler = http.HandlerFunc(charts.serve)
	for i := range wrappers {
		handler = wrappers[len(wrappers)-1-i](handler)
	}
	charts.Server = Serve(t, handler)
	return charts
}

func (c *Charts) serve(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	content, ok := c.files[r.URL.Path]
	switch {
	case !ok:
		http.NotFound(w, r)
	case r.URL.Path == "/index.yaml" && c.etag == r.Header.Get("If-None-Match"):
		w.WriteHeader(http.StatusNotModified)
	default:
		if r.URL.Path == "/index.yaml" {
			w.Header().Set("ETag", c.etag)
		}
		_, _ = w.Write(content)
	}
}

// Put serves bytes at a path.
func (c *Charts) Put(path string, content []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.files[path] = content
	if path == "/index.yaml" {
		c.etag = fmt.Sprintf("%q", Digest(content))
	}
}

// Add packs a chart, serves it, adds it to the index and returns its digest.
func (c *Charts) Add(name, version string, files map[string]string) string {
	packed := Chart(name, version, files)
	c.Put(fmt.Sprintf("/%s-%s.tgz", name, version), packed)
	return c.List(name, version, Digest(packed), fmt.Sprintf("%s-%s.tgz", name, version))
}

// List adds an entry to the index.
func (c *Charts) List(name, version, digest, url string) string {
	c.mu.Lock()
	c.entries[name] = append(c.entries[name], fmt.Sprintf(
		"  - apiVersion: v2\n    name: %s\n    version: %q\n    digest: %s\n    urls:\n    - %s\n",
		name, version, strings.TrimPrefix(digest, "sha256:"), url))
	var index strings.Builder
	index.WriteString("apiVersion: v1\nentries:\n")
	for _, chart := range slices.Sorted(maps.Keys(c.entries)) {
		index.WriteString("  " + chart + ":\n" + strings.Join(c.entries[chart], ""))
	}
	c.mu.Unlock()
	c.Put("/index.yaml", []byte(index.String()+"generated: \"2026-01-01T00:00:00Z\"\n"))
	return digest
}

// Digest is "sha256:<hex>" of bytes.
func Digest(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Chart packs a chart, with a generated Chart.yaml if files have none.
func Chart(name, version string, files map[string]string) []byte {
	all := map[string]string{"Chart.yaml": fmt.Sprintf("apiVersion: v2\nname: %s\nversion: %q\n", name, version)}
	maps.Copy(all, files)
	headers := []File{}
	for _, file := range slices.Sorted(maps.Keys(all)) {
		headers = append(headers, File{Header: tar.Header{Name: name + "/" + file}, Content: all[file]})
	}
	return Archive(headers...)
}

// File is an entry of an archive.
type File struct {
	tar.Header
	Content string
}

// Archive packs entries, with default sizes and modes.
func Archive(files ...File) []byte {
	return raw(Tar(files...))
}

// Tar is Archive without compression.
func Tar(files ...File) []byte {
	var packed bytes.Buffer
	writer := tar.NewWriter(&packed)
	for _, file := range files {
		header := file.Header
		if header.Size == 0 {
			header.Size = int64(len(file.Content))
		}
		if header.Mode == 0 && header.Typeflag != tar.TypeXGlobalHeader {
			header.Mode = 0o644
		}
		if err := writer.WriteHeader(&header); err != nil {
			panic(fmt.Sprintf("header %q: %v", header.Name, err))
		}
		_, _ = writer.Write([]byte(file.Content))
	}
	_ = writer.Close()
	return packed.Bytes()
}
