package rendering

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// TestSearchesAreBounded fails when only the size of a content limits its search, or when a search within the limits
// finds nothing.
func TestSearchesAreBounded(t *testing.T) {
	large, many := fstest.MapFS{}, fstest.MapFS{}
	whole := []byte(strings.Repeat("x", 4<<20))
	for i := range searchBytes/len(whole) + 1 {
		large[fmt.Sprintf("templates/%03d.yaml", i)] = &fstest.MapFile{Data: whole}
	}
	for i := range searchFiles + 1 {
		many[fmt.Sprintf("templates/%05d.yaml", i)] = &fstest.MapFile{}
	}
	for name, content := range map[string]fstest.MapFS{"bytes": large, "files": many} {
		searched := 0
		found, err := anyFile(content, isTemplate, func(string) bool { searched++; return false })
		if found || !errors.Is(err, errSearch) || searched != len(content)-1 {
			t.Errorf("%s: found %t in %d of %d files: %v", name, found, searched, len(content), err)
		}
	}
	if found, err := anyFile(large, isTemplate, func(text string) bool { return strings.HasPrefix(text, "xx") }); !found || err != nil {
		t.Errorf("found %t: %v", found, err)
	}
}

// TestASearchWithoutEndIsMadeOnce fails when a content that is too large is searched again in each reconciliation, or
// is no error of its version.
func TestASearchWithoutEndIsMadeOnce(t *testing.T) {
	many := fstest.MapFS{}
	for i := range searchFiles + 1 {
		many[fmt.Sprintf("templates/%05d.yaml", i)] = &fstest.MapFile{}
	}
	asked, made := newSearches[bool](), 0
	for range 3 {
		_, err := asked.ask("digest", many, func(content fs.FS) (bool, error) {
			made++
			return asksForCapabilities(content)
		})
		failure, ok := errors.AsType[*Error](err)
		if !ok || failure.Cause != CauseVersion || Reason(failure) != v1.ReasonLimitExceeded {
			t.Errorf("got %v", err)
		}
	}
	if made != 1 {
		t.Errorf("it is searched %d times", made)
	}
}
