package git_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/fetchtest"
	"github.com/trellis-addons/trellis/pkg/fetch/git"
	"github.com/trellis-addons/trellis/test/long"
)

// TestHostileTreesAreRefused (AC31): The corpus of archives, as trees: a bad name or a link is also refused in a git
// tree.
func TestHostileTreesAreRefused(t *testing.T) {
	long.Heavy(t)
	server := fetchtest.ServeGit(t)
	refusals := 0
	for i, test := range fetchtest.Corpus() {
		repository := server.Repository(t, strconv.Itoa(i))
		tree, ok := test.Tree(repository)
		if !ok {
			continue
		}
		repository.CommitTree("main", tree)
		t.Run(test.Name, func(t *testing.T) {
			reference := fetch.Reference{
				Location: git.Location{Remote: repository.URL, Branch: "main"}, Credentials: fetch.Credentials{CA: server.CA},
			}
			beside := test.Name == "a folder beside that begins alike" // outside of a chart, but not of a repository
			if !test.Refused || beside {
				reference.Location = git.Location{Remote: repository.URL, Branch: "main", Path: "top"}
			}
			source := client(t)
			revision, err := source.Resolve(t.Context(), reference)
			if err != nil {
				t.Fatal(err)
			}
			into := folder(t)
			_, err = source.Fetch(t.Context(), reference, revision, into)
			if left, _ := os.ReadDir(filepath.Dir(into)); len(left) != 1 {
				t.Errorf("beside the folder: %v", left)
			}
			switch {
			case beside:
				if got := fetchtest.Files(t, into); err != nil || len(got) != 2 {
					t.Errorf("got %v, %v", got, err)
				}
			case !test.Refused:
				if diff := cmp.Diff(test.Files, fetchtest.Files(t, into)); err != nil || diff != "" {
					t.Errorf("got %v, %s", err, diff)
				}
			case strings.Contains(test.Name, `//x"`) || strings.Contains(test.Name, `"/etc/x"`):
				if err == nil { // an empty name: git itself refuses to send such a tree
					t.Error("got something")
				}
			case !isRefused(err):
				t.Errorf("got %v", err)
			default:
				refusals++
			}
		})
	}
	if refusals < 20 {
		t.Errorf("only %d cases of the corpus are trees that were refused", refusals)
	}
}
