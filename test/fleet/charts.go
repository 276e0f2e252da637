package fleet

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/Masterminds/semver/v3"
	"sigs.k8s.io/yaml"
)

// chartIndex caches the index of a folder until the folder changes.
type chartIndex struct {
	mutex   sync.Mutex
	key     string
	content []byte
}

type chartFile struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

var errNoChart = errors.New("the archive has no Chart.yaml with name and version")

func (s *Sources) serveCharts(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/charts/")
	if name != "index.yaml" {
		http.ServeFileFS(w, r, os.DirFS(s.ChartsFolder), name)
		return
	}
	content, err := s.index.of(s.ChartsFolder)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = w.Write(content)
}

// of returns the index of the folder's archives, computed again after one was added, removed or changed.
func (i *chartIndex) of(folder string) ([]byte, error) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	paths, err := filepath.Glob(filepath.Join(folder, "*.tgz"))
	if err != nil {
		return nil, err
	}
	var key strings.Builder
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			fmt.Fprintln(&key, path, info.Size(), info.ModTime().UnixNano())
		}
	}
	if i.key == key.String() && i.content != nil {
		return i.content, nil
	}
	content, err := yaml.Marshal(map[string]any{
		"apiVersion": "v1", "generated": time.Now().UTC().Format(time.RFC3339), "entries": chartEntries(paths),
	})
	if err != nil {
		return nil, fmt.Errorf("writing the index: %w", err)
	}
	i.key, i.content = key.String(), content
	return content, nil
}

// chartEntries leaves out files that are no charts: one may be an archive that is being copied at this moment.
func chartEntries(paths []string) map[string][]map[string]any {
	entries := map[string][]map[string]any{}
	for _, path := range paths {
		archive, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		entry, chart, err := readChart(archive)
		if err != nil {
			continue
		}
		sum := sha256.Sum256(archive)
		entry["digest"], entry["urls"] = hex.EncodeToString(sum[:]), []string{filepath.Base(path)}
		entries[chart.Name] = append(entries[chart.Name], entry)
	}
	for _, versions := range entries {
		slices.SortStableFunc(versions, newestFirst)
	}
	return entries
}

func newestFirst(a, b map[string]any) int {
	first, err := semver.NewVersion(fmt.Sprint(a["version"]))
	if err != nil {
		return 1
	}
	second, err := semver.NewVersion(fmt.Sprint(b["version"]))
	if err != nil {
		return -1
	}
	return second.Compare(first)
}

// readChart returns the content of the archive's top Chart.yaml.
func readChart(archive []byte) (map[string]any, chartFile, error) {
	unzipped, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, chartFile{}, err
	}
	for reader := tar.NewReader(unzipped); ; {
		header, err := reader.Next()
		if err != nil {
			return nil, chartFile{}, errors.Join(errNoChart, err)
		}
		if _, file, _ := strings.Cut(header.Name, "/"); file != "Chart.yaml" {
			continue
		}
		content, err := io.ReadAll(io.LimitReader(reader, 1<<20))
		if err != nil {
			return nil, chartFile{}, err
		}
		return parseChart(content)
	}
}

func parseChart(content []byte) (map[string]any, chartFile, error) {
	entry, chart := map[string]any{}, chartFile{}
	if err := yaml.Unmarshal(content, &entry); err != nil {
		return nil, chart, fmt.Errorf("decoding Chart.yaml: %w", err)
	}
	if err := yaml.Unmarshal(content, &chart); err != nil {
		return nil, chart, fmt.Errorf("decoding Chart.yaml: %w", err)
	}
	if chart.Name == "" || chart.Version == "" {
		return nil, chart, errNoChart
	}
	return entry, chart, nil
}

// PackChart creates a chart archive of files whose paths are relative to the chart's top, such as Chart.yaml and
// templates/deployment.yaml. Equal files give equal bytes.
func PackChart(files map[string]string) ([]byte, error) {
	_, chart, err := parseChart([]byte(files["Chart.yaml"]))
	if err != nil {
		return nil, err
	}
	archive, err := pack(chart.Name+"/", files)
	if err != nil {
		return nil, fmt.Errorf("packing chart %q: %w", chart.Name, err)
	}
	return archive, nil
}

// pack creates a gzipped archive of files below a folder, "" or ending in a slash.
func pack(above string, files map[string]string) ([]byte, error) {
	var archive bytes.Buffer
	zipped := gzip.NewWriter(&archive)
	writer := tar.NewWriter(zipped)
	for _, path := range slices.Sorted(maps.Keys(files)) {
		header := &tar.Header{Name: above + path, Mode: 0o644, Size: int64(len(files[path])), Typeflag: tar.TypeReg}
		if err := writer.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("packing %q: %w", path, err)
		}
		if _, err := io.WriteString(writer, files[path]); err != nil {
			return nil, fmt.Errorf("packing %q: %w", path, err)
		}
	}
	if err := errors.Join(writer.Close(), zipped.Close()); err != nil {
		return nil, err
	}
	return archive.Bytes(), nil
}

// Chart packs a chart and stores it in the Helm repository; it replaces an archive of the same name and version.
func (s *Sources) Chart(files map[string]string) error {
	archive, err := PackChart(files)
	if err != nil {
		return err
	}
	_, chart, err := parseChart([]byte(files["Chart.yaml"]))
	if err != nil {
		return err
	}
	path := filepath.Join(s.ChartsFolder, chart.Name+"-"+chart.Version+".tgz")
	if err := os.WriteFile(path+".new", archive, 0o644); err != nil {
		return fmt.Errorf("writing chart %q: %w", chart.Name, err)
	}
	return os.Rename(path+".new", path)
}
