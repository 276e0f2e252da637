// Package assets has the templates, the stylesheet and the scripts of the pages, embedded in the program. Their addresses
// have the digest of their content, so that browsers may keep them.
//
// Folder thirdparty has htmx 2.0.11 and its extension for server-sent events 2.2.4, unchanged, both under the Zero-Clause BSD
// licences beside them.
package assets

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strings"
)

// Prefix begins the path of each asset.
const Prefix = "/assets/"

//go:embed static/* thirdparty/*.js
var files embed.FS

// Templates of all pages.
//
//go:embed templates/*.html
var Templates embed.FS

// asset is a file as it is sent.
type asset struct {
	kind           string
	plain, smaller []byte
}

// Assets serves the files by names with their digest.
type Assets struct {
	served map[string]asset
	names  map[string]string
}

var kinds = map[string]string{
	".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
}

// New reads the embedded files.
func New() (*Assets, error) {
	made := &Assets{served: map[string]asset{}, names: map[string]string{}}
	return made, fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		kind, isServed := kinds[path.Ext(name)]
		if err != nil || entry.IsDir() || !isServed {
			return err
		}
		content, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(content)
		base, extension := path.Base(name), path.Ext(name)
		at := Prefix + strings.TrimSuffix(base, extension) + "." + hex.EncodeToString(sum[:8]) + extension
		var out bytes.Buffer
		writer, _ := gzip.NewWriterLevel(&out, gzip.BestCompression) // the level is known
		_, _ = writer.Write(content)                                 // a buffer takes all
		_ = writer.Close()
		made.served[at], made.names[base] = asset{kind, content, out.Bytes()}, at
		return nil
	})
}

// URL is the path of a file; "" if there is none.
func (a *Assets) URL(name string) string { return a.names[name] }

// ServeHTTP serves the files.
func (a *Assets) ServeHTTP(writer http.ResponseWriter, request *http.Request) {
	found, isThere := a.served[request.URL.Path]
	if !isThere {
		http.Error(writer, "there is no such file", http.StatusNotFound)
		return
	}
	header := writer.Header()
	header.Set("Content-Type", found.kind)
	header.Set("Cache-Control", "public, max-age=31536000, immutable")
	header.Set("Vary", "Accept-Encoding")
	content := found.plain
	if strings.Contains(request.Header.Get("Accept-Encoding"), "gzip") {
		header.Set("Content-Encoding", "gzip")
		content = found.smaller
	}
	_, _ = writer.Write(content)
}
