package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
)

// manifests stores the manifests of a registry in a file, one per line: the registry itself has them in memory, and
// blobs on the disk.
type manifests struct {
	next  http.Handler
	path  string
	mutex sync.Mutex
}

// manifestChange is one push, or one removal if it has no content.
type manifestChange struct {
	Path    string `json:"path"`
	Type    string `json:"type,omitempty"`
	Content []byte `json:"content,omitempty"`
}

// keepManifests pushes the manifests of the file to the registry, and stores those that are pushed from now on.
func keepManifests(path string, next http.Handler) (http.Handler, error) {
	m := &manifests{next: next, path: path}
	content, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the registry's manifests: %w", err)
	}
	for lines := json.NewDecoder(bytes.NewReader(content)); ; {
		var change manifestChange
		if err := lines.Decode(&change); errors.Is(err, io.EOF) {
			return m, nil
		} else if err != nil {
			return nil, fmt.Errorf("reading the registry's manifests, of file %q: %w", path, err)
		}
		next.ServeHTTP(httptest.NewRecorder(), change.request())
	}
}

func (c manifestChange) request() *http.Request {
	method := http.MethodPut
	if c.Content == nil {
		method = http.MethodDelete
	}
	request := httptest.NewRequestWithContext(context.Background(), method, c.Path, bytes.NewReader(c.Content))
	request.Header.Set("Content-Type", c.Type)
	return request
}

// ServeHTTP stores a change before it answers.
func (m *manifests) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	isChange := r.Method == http.MethodPut || r.Method == http.MethodDelete
	if !isChange || !strings.Contains(r.URL.Path, "/manifests/") {
		m.next.ServeHTTP(w, r)
		return
	}
	change := manifestChange{Path: r.URL.Path, Type: r.Header.Get("Content-Type")}
	if r.Method == http.MethodPut {
		content, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		change.Content, r.Body = content, io.NopCloser(bytes.NewReader(content))
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	answer := httptest.NewRecorder()
	m.next.ServeHTTP(answer, r)
	if answer.Code < http.StatusBadRequest {
		if err := m.keep(change); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}

func (m *manifests) keep(change manifestChange) error {
	file, err := os.OpenFile(m.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("keeping a manifest: %w", err)
	}
	defer file.Close()
	return json.NewEncoder(file).Encode(change)
}
