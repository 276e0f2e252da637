package download

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/trellis-addons/trellis/test/binaries"
)

// ListVariable names the environment variable that replaces the list of the checkout, for tests.
const ListVariable = "TRELLIS_DOWNLOADS"

// Entry says where a project publishes a program. In URLs and Member, {version} is the release and {arch} is amd64 or arm64.
type Entry struct {
	// Program is the name of the program.
	Program string `json:"program"`
	// URL is the file to download: the program itself, or a .tar.gz that has it.
	URL string `json:"url"`
	// Member is the path of the program in the archive; empty where URL is the program.
	Member string `json:"member,omitempty"`
	// Published is where the project publishes the checksum: a file that has it alone, or lines "checksum name".
	// Empty: the project publishes none, and the program is always compiled.
	Published string `json:"published,omitempty"`
	// Sums are checksums that were read from Published, by "<release>/<arch>": 64 hexadecimal digits of SHA-256, or 128
	// of SHA-512. They are never computed from a download or from a program that was built here.
	Sums map[string]string `json:"sums,omitempty"`
}

// ListOf is the path of the list of a checkout.
func ListOf(root string) string {
	if path := os.Getenv(ListVariable); path != "" {
		return path
	}
	return filepath.Join(root, "hack", "controlplanes", "downloads.json")
}

func read(path string) ([]Entry, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the list of downloads: %w", err)
	}
	var entries []Entry
	if err := json.Unmarshal(content, &entries); err != nil {
		return nil, fmt.Errorf("reading the list of downloads %q: %w", path, err)
	}
	return entries, nil
}

// place is one program of a release for one processor.
type place struct{ release, arch string }

func placeOf(program binaries.Program) place { return place{program.Release, runtime.GOARCH} }

func (p place) in(text string) string {
	return strings.NewReplacer("{version}", p.release, "{arch}", p.arch).Replace(text)
}

func (p place) key() string { return p.release + "/" + p.arch }
