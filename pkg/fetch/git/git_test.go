package git_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/fetchtest"
	"github.com/trellis-addons/trellis/pkg/fetch/git"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
)

// client creates a source that reaches the servers of a test.
func client(t *testing.T) *git.Source {
	t.Helper()
	network := outbound.New(outbound.Options{AllowCIDRs: fetchtest.Loopback})
	t.Cleanup(network.Close)
	return git.New(network)
}

func folder(t *testing.T) string {
	t.Helper()
	return fetchtest.Folder(t)
}

func fetchInto(t *testing.T, source *git.Source, reference fetch.Reference) (map[string]string, string, string) {
	t.Helper()
	revision, err := source.Resolve(t.Context(), reference)
	if err != nil {
		t.Fatalf("resolve: %v", err)
	}
	into := folder(t)
	digest, err := source.Fetch(t.Context(), reference, revision, into)
	if err != nil {
		t.Fatalf("fetch: %v", err)
	}
	return fetchtest.Files(t, into), revision.Name, digest
}

func TestRefs(t *testing.T) {
	server := fetchtest.ServeGit(t)
	repository := server.Repository(t, "addons")
	first := repository.Commit("main", map[string]string{"a/x.yaml": "one", "a/b/y.yaml": "two", "z": "other"})
	repository.Ref("refs/tags/v1.2.0", first)
	repository.Annotate("v1.10.0", first)
	repository.Ref("refs/tags/v2.0.0-rc.1", first)
	repository.Ref("refs/tags/nightly", first)
	second := repository.Commit("main", map[string]string{"a/x.yaml": "changed"})
	repository.Ref("refs/tags/v3.0.0", second)

	old := map[string]string{"x.yaml": "one", "b/y.yaml": "two"}
	changed := map[string]string{"x.yaml": "changed"}
	for _, test := range []struct {
		why       string
		reference git.Location
		commit    string
		want      map[string]string
	}{
		{"a branch is its last commit", git.Location{Branch: "main"}, second, changed},
		{"a light tag is its commit", git.Location{Tag: "v1.2.0"}, first, old},
		{"an annotated tag is peeled", git.Location{Tag: "v1.10.0"}, first, old},
		{"a commit that is no tip is found in the history", git.Location{Commit: fetch.Selector(first)}, first, old},
		{"a commit that is a tip", git.Location{Commit: fetch.Selector(second)}, second, changed},
		{"a range takes the highest, by number and not by letter", git.Location{Semver: "1.x"}, first, old},
		{"a range without pre-releases takes none", git.Location{Semver: ">=1.0.0"}, second, changed},
		{"a slash at the end of the path", git.Location{Branch: "main", Path: "./a/"}, second, changed},
	} {
		t.Run(test.why, func(t *testing.T) {
			reference := test.reference
			reference.Remote = repository.URL
			if reference.Path == "" {
				reference.Path = "a"
			}
			got, commit, _ := fetchInto(t, client(t), fetch.Reference{
				Location: reference, Credentials: fetch.Credentials{CA: server.CA},
			})
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
			if commit != test.commit {
				t.Errorf("commit %s, want %s", commit, test.commit)
			}
		})
	}
}
