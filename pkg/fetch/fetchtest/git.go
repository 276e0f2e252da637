package fetchtest

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/cgi"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Git is a server of git repositories: git's own http-backend.
type Git struct {
	*Server
	folder string
}

// ServeGit starts a git server behind wrappers, the first one outermost.
func ServeGit(t testing.TB, wrappers ...func(http.Handler) http.Handler) *Git {
	t.Helper()
	folder := t.TempDir()
	var handler http.Handler = &cgi.Handler{
		Path: "/usr/bin/env", Args: []string{"git", "http-backend"},
		Env: []string{
			"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
			"GIT_PROJECT_ROOT=" + folder, "GIT_HTTP_EXPORT_ALL=1",
		},
	}
	for i := range wrappers {
		handler = wrappers[len(wrappers)-1-i](handler)
	}
	return &Git{Server: Serve(t, handler), folder: folder}
}

// Repository creates an empty repository.
func (g *Git) Repository(t testing.TB, name string) *Repository {
	t.Helper()
	return newRepository(t, g.URL, g.folder, name)
}

func newRepository(t testing.TB, above, folder, name string) *Repository {
	t.Helper()
	r := &Repository{t: t, URL: above + "/" + name + ".git", Folder: filepath.Join(folder, name+".git")}
	for file, content := range map[string]string{
		"HEAD": "ref: refs/heads/main\n", "config": "[core]\n\trepositoryformatversion = 0\n\tbare = true\n",
		"objects/info/keep": "", "refs/heads/.keep": "",
	} {
		r.file(file, []byte(content))
	}
	return r
}

// Repository is a bare repository on a server. It writes objects without git's checks.
type Repository struct {
	t      testing.TB
	URL    string
	Folder string
}

// Entry is a line of a tree: Content of a new blob, or the hash of an existing Object.
type Entry struct{ Mode, Content, Object string }

// Commit adds a commit with exactly these files to a branch and returns its hash. Names that end in "@" are symbolic
// links to their content.
func (r *Repository) Commit(branch string, files map[string]string) string {
	r.t.Helper()
	entries := map[string]Entry{}
	for name, content := range files {
		entry := Entry{Mode: "100644", Content: content}
		if link, ok := strings.CutSuffix(name, "@"); ok {
			name, entry.Mode = link, "120000"
		}
		entries[name] = entry
	}
	return r.CommitTree(branch, r.Tree(entries))
}

// CommitTree adds a commit with a tree to a branch.
func (r *Repository) CommitTree(branch, tree string) string {
	r.t.Helper()
	ref := filepath.Join(r.Folder, "refs", "heads", branch)
	content := "tree " + tree + "\n"
	if parent, err := os.ReadFile(ref); err == nil {
		content += "parent " + string(parent)
	}
	const who = "a <a@example.com> 1767225600 +0000\n"
	commit := r.Object("commit", []byte(content+"author "+who+"committer "+who+"\nchange\n"))
	r.Ref("refs/heads/"+branch, commit)
	return commit
}

// Ref sets a ref to an object.
func (r *Repository) Ref(name, object string) {
	r.t.Helper()
	r.file(name, []byte(object+"\n"))
}

// Annotate creates an annotated tag.
func (r *Repository) Annotate(tag, commit string) {
	r.t.Helper()
	r.Ref("refs/tags/"+tag, r.Object("tag", fmt.Appendf(nil,
		"object %s\ntype commit\ntag %s\ntagger a <a@example.com> 1767225600 +0000\n\ntag\n", commit, tag)))
}

// Tree writes the trees for slash-separated names and returns the top's hash.
func (r *Repository) Tree(entries map[string]Entry) string {
	r.t.Helper()
	top := map[string]Entry{}
	below := map[string]map[string]Entry{}
	for name, entry := range entries {
		first, rest, nested := strings.Cut(name, "/")
		if !nested {
			top[first] = entry
			continue
		}
		if below[first] == nil {
			below[first] = map[string]Entry{}
		}
		below[first][rest] = entry
	}
	for name, inner := range below {
		top[name] = Entry{Mode: "40000", Object: r.Tree(inner)}
	}
	return r.RawTree(top)
}

// RawTree writes one tree with unchecked names.
func (r *Repository) RawTree(entries map[string]Entry) string {
	r.t.Helper()
	sortedBy := func(name string) string {
		if entries[name].Mode == "40000" {
			return name + "/" // git sorts folders in this way
		}
		return name
	}
	var content bytes.Buffer
	names := slices.SortedFunc(maps.Keys(entries), func(a, b string) int { return strings.Compare(sortedBy(a), sortedBy(b)) })
	for _, name := range names {
		entry := entries[name]
		if entry.Object == "" {
			entry.Object = r.Object("blob", []byte(entry.Content))
		}
		hash, err := hex.DecodeString(entry.Object)
		if err != nil {
			r.t.Fatalf("object %q: %v", entry.Object, err)
		}
		content.WriteString(entry.Mode + " " + name + "\x00")
		content.Write(hash)
	}
	return r.Object("tree", content.Bytes())
}

// Object writes an object of a kind and returns its hash.
func (r *Repository) Object(kind string, content []byte) string {
	r.t.Helper()
	whole := append(fmt.Appendf(nil, "%s %d\x00", kind, len(content)), content...)
	sum := sha1.Sum(whole)
	hash := hex.EncodeToString(sum[:])
	var packed bytes.Buffer
	compressor := zlib.NewWriter(&packed)
	_, _ = compressor.Write(whole)
	_ = compressor.Close()
	r.file(filepath.Join("objects", hash[:2], hash[2:]), packed.Bytes())
	return hash
}

func (r *Repository) file(name string, content []byte) {
	r.t.Helper()
	path := filepath.Join(r.Folder, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		r.t.Fatal(err)
	}
	// git may have mapped an earlier file of the name: it is replaced, not truncated.
	fresh := filepath.Join(r.Folder, strings.ReplaceAll(name, "/", "-"))
	if err := errors.Join(os.WriteFile(fresh, content, 0o600), os.Rename(fresh, path)); err != nil {
		r.t.Fatal(err)
	}
}
