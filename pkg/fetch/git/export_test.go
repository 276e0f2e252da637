package git

import (
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/archive"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
)

// Limit lets a test try a limit without the tens of thousands of files that it takes.
func (s *Source) Limit(limits archive.Limits) { s.limits = limits }

// IsDotGit is what trees are checked with.
var IsDotGit = isDotGit

// ReadPack indexes a pack and writes a commit's tree out.
func ReadPack(t *testing.T, content []byte, commit, folder string) error {
	t.Helper()
	file, err := nameless(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Write(content); err != nil {
		t.Fatal(err)
	}
	pack, err := readPack(t.Context(), file, "https://example.com/x")
	if err != nil {
		return err
	}
	source := &Source{network: outbound.New(outbound.Options{}), limits: archive.Limits{Unpacked: 1 << 20, Entries: 100}}
	_, err = source.write(t.Context(), &fetch.GitReference{Remote: "https://example.com/x"}, pack, plumbing.NewHash(commit), folder)
	return err
}
