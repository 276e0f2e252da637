package git_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/fetchtest"
	"github.com/trellis-addons/trellis/pkg/fetch/git"
)

// TestRemotesOfOtherTransportsAreRefused (AC13): Remotes other than https and ssh, and those that look like an
// option, are refused.
func TestRemotesOfOtherTransportsAreRefused(t *testing.T) {
	source := client(t)
	for _, remote := range []string{
		"file:///srv/x", "/srv/x", "../x", ".", "", "x", "ext::sh -c touch /tmp/x", "git://127.0.0.1/x", "ftp://127.0.0.1/x",
		"http://127.0.0.1/x", "ssh://-oProxyCommand=x/y", "--upload-pack=x",
		"https://u:p@127.0.0.1/x", "https://127.0.0.1/x?y=z", "https://-oProxyCommand=x/y", "https://127.0.0.1/'x", "HTTPS:x",
	} {
		reference := fetch.Reference{Location: git.Location{Remote: remote, Branch: "main"}}
		_, err := source.Resolve(t.Context(), reference)
		if remote == "https://127.0.0.1/'x" { // a quote is a character like others: there is no shell
			if err == nil || isRefused(err) {
				t.Errorf("%q: got %v", remote, err)
			}
			continue
		}
		if !isRefused(err) {
			t.Errorf("resolve %q: got %v", remote, err)
		}
		revision := fetch.Revision{Name: strings.Repeat("a", 40)}
		if _, err := source.Fetch(t.Context(), reference, revision, folder(t)); !isRefused(err) {
			t.Errorf("fetch %q: got %v", remote, err)
		}
	}
}

// TestOtherTransportsAreNotLinked (AC13): Transports that are not linked can't be reached by any URL.
func TestOtherTransportsAreNotLinked(t *testing.T) {
	output, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "github.com/trellis-addons/trellis/pkg/fetch/git").Output()
	if err != nil {
		t.Fatal(err)
	}
	linked := string(output)
	if !strings.Contains(linked, "github.com/go-git/go-git/v5/plumbing") {
		t.Fatal("go list says nothing of go-git")
	}
	for line := range strings.Lines(linked) {
		name := strings.TrimSpace(line)
		if strings.Contains(name, "go-git/v5/plumbing/transport") || name == "os/exec" || name == "github.com/go-git/go-git/v5" {
			t.Errorf("%s is linked", name)
		}
	}
}

// TestOddRefsAreRefused (AC21): Ambiguous names of branches and tags are refused.
func TestOddRefsAreRefused(t *testing.T) {
	for name, ok := range map[string]bool{
		"main": true, "release/1.2": true, "v1.2.3+build": true, "feature/ÄÖ-x_y": true, "a@b": true, "deadbeef": true,
		"": false, "HEAD": false, "@": false, "refs/heads/main": false, "refs/pull/1/head": false, "a..b": false, "a@{1}": false,
		"-x": false, "a/-x": false, ".x": false, "a/.x": false, "x.": false, "x.lock": false, "x.lock/y": false, "/x": false,
		"x/": false, "x//y": false, "a b": false, "a~1": false, "a^": false, "a:b": false, "a?": false, "a*": false, "a[": false,
		`a\b`: false, "a\x00": false, "a\n": false, "a\u202eb": false, "\xff": false, strings.Repeat("a", 251): false,
		strings.Repeat("a", 40): false, strings.Repeat("A", 40): false,
	} {
		if err := git.CheckRef(name); (err == nil) != ok && name != "" {
			t.Errorf("%q: got %v", name, err)
		}
	}
	source := client(t)
	for why, reference := range map[string]git.Location{
		"none of them":     {},
		"two of them":      {Branch: "main", Tag: "v1"},
		"a short commit":   {Commit: "deadbeef"},
		"no commit":        {Commit: fetch.Selector(strings.Repeat("g", 40))},
		"no range":         {Semver: "not a range"},
		"a range too long": {Semver: fetch.Selector(">=1.0.0" + strings.Repeat(" || >=1.0.0", 100))},
		"a bad path":       {Branch: "main", Path: "../x"},
	} {
		reference.Remote = "https://127.0.0.1/x"
		if _, err := source.Resolve(t.Context(), fetch.Reference{Location: reference}); !isRefused(err) {
			t.Errorf("%s: got %v", why, err)
		}
	}
	if revision, err := source.Resolve(t.Context(), fetch.Reference{Location: git.Location{
		Remote: "https://127.0.0.1/x", Commit: fetch.Selector(strings.Repeat("A", 40)),
	}}); err != nil || revision.Name != strings.Repeat("a", 40) {
		t.Errorf("a commit needs no network: got %v, %v", revision, err)
	}
}

func FuzzCheckRef(f *testing.F) {
	for _, seed := range []string{"main", "a/b", "HEAD", "refs/heads/x", "a..b", "\xff", "x.lock"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if git.CheckRef(name) != nil || name == "" {
			return
		}
		if strings.Contains(name, "..") || strings.ContainsAny(name, "\x00 ~^:?*[\\\n") || name[0] == '-' || name[0] == '/' ||
			strings.HasPrefix(name, "refs/") {
			t.Errorf("%q is let through", name)
		}
	})
}

func FuzzRemote(f *testing.F) {
	for _, seed := range []string{
		"https://example.com/x", "file:///x", "git@x:y", "https://u:p@x/", "https://[::1]/x", "ssh://git@x:22/y", "git@x:-y", "ssh://x/'",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, remote string) {
		// A commit is resolved without the network, so the result depends only on the URL.
		_, err := client(t).Resolve(t.Context(), fetch.Reference{Location: git.Location{Remote: remote, Commit: fetch.Selector(strings.Repeat("a", 40))}})
		if err != nil || strings.HasPrefix(strings.ToLower(remote), "https://") {
			return
		}
		user, shown, path, err := git.ParseSSH(remote)
		if err != nil || !strings.HasPrefix(shown, "ssh://") || strings.HasPrefix(user, "-") || strings.HasPrefix(shown, "ssh://-") ||
			strings.ContainsAny(path, "'\"`\\$;&|<>()!*?#\x00\n\r\t ") || strings.HasPrefix(path, "-") || strings.Contains(path, "/-") {
			t.Errorf("%q is let through: %v", remote, err)
		}
	})
}

// TestMissing (AC32): The error for a missing path in a repository names it.
func TestMissing(t *testing.T) {
	server := fetchtest.ServeGit(t)
	repository := server.Repository(t, "addons")
	commit := repository.Commit("main", map[string]string{"a/file": "x", "other": "y", "l@": "a"})
	repository.Ref("refs/tags/v1.0.0", commit)
	empty := server.Repository(t, "empty")
	credentials := fetch.Credentials{CA: server.CA, Username: "canary", Password: "canary"}
	for _, test := range []struct {
		why       string
		reference git.Location
		says      []string
	}{
		{"a branch", git.Location{Remote: repository.URL, Branch: "mian"}, []string{`branch "mian"`, repository.URL}},
		{"a tag", git.Location{Remote: repository.URL, Tag: "v2"}, []string{`tag "v2"`}},
		{"a range", git.Location{Remote: repository.URL, Semver: ">=2"}, []string{`">=2"`}},
		{"a commit", git.Location{Remote: repository.URL, Commit: fetch.Selector(strings.Repeat("a", 40))}, []string{"commit aaaa"}},
		{"a repository", git.Location{Remote: server.URL + "/nowhere.git", Branch: "main"}, []string{"repository", "/nowhere.git"}},
		{"everything", git.Location{Remote: empty.URL, Branch: "main"}, []string{"the repository is empty"}},
		{"a path", git.Location{Remote: repository.URL, Branch: "main", Path: "a/b/c"},
			[]string{`path "a/b/c"`, repository.URL, `branch "main"`, commit}},
	} {
		t.Run(test.why, func(t *testing.T) {
			reference := fetch.Reference{Location: test.reference, Credentials: credentials}
			source := client(t)
			revision, err := source.Resolve(t.Context(), reference)
			if err == nil {
				_, err = source.Fetch(t.Context(), reference, revision, folder(t))
			}
			if _, ok := errors.AsType[*fetch.NotFoundError](err); !ok {
				t.Fatalf("got %v", err)
			}
			for _, part := range test.says {
				if !strings.Contains(err.Error(), part) || strings.Contains(err.Error(), "canary") {
					t.Errorf("got %v, want %q in it", err, part)
				}
			}
		})
	}
	for path, says := range map[string]string{"a/file": "is a file", "l": "links", "other/x": "is a file"} {
		reference := fetch.Reference{
			Location: git.Location{Remote: repository.URL, Branch: "main", Path: path}, Credentials: credentials,
		}
		_, err := client(t).Fetch(t.Context(), reference, fetch.Revision{Name: commit}, folder(t))
		if !isRefused(err) || !strings.Contains(err.Error(), says) {
			t.Errorf("path %q: got %v", path, err)
		}
	}
}

// TestServersThatAreNone (RS48): A login page instead of a repository is refused with that reason.
func TestServersThatAreNone(t *testing.T) {
	for _, test := range []struct {
		why    string
		answer func(w http.ResponseWriter, r *http.Request)
		want   any
	}{
		{"a login page", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprint(w, "<html>log in</html>")
		}, new(*fetch.RefusedError)},
		{"a server without the smart protocol", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			fmt.Fprint(w, strings.Repeat("a", 40)+"\trefs/heads/main\n")
		}, new(*fetch.RefusedError)},
		{"credentials are asked for", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) },
			new(*fetch.UnauthorizedError)},
		{"a repository that is not for us", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) },
			new(*fetch.UnauthorizedError)},
		{"a server in trouble", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) },
			new(*fetch.UnavailableError)},
		{"garbage under the right name", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
			fmt.Fprint(w, "zzzz")
		}, new(*fetch.UnavailableError)},
		{"another hash", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
			fmt.Fprint(w, pkt("# service=git-upload-pack\n")+"0000"+
				pkt(strings.Repeat("a", 40)+" refs/heads/main\x00object-format=sha256\n")+"0000")
		}, new(*fetch.RefusedError)},
	} {
		t.Run(test.why, func(t *testing.T) {
			server := fetchtest.Serve(t, http.HandlerFunc(test.answer))
			_, err := client(t).Resolve(t.Context(), fetch.Reference{
				Location: git.Location{Remote: server.URL + "/x", Branch: "main"}, Credentials: fetch.Credentials{CA: server.CA},
			})
			if !errors.As(err, test.want) {
				t.Errorf("got %T: %v", err, err)
			}
		})
	}
}

// TestGitRedirectsCarryNoCredentials (V19): A git server that redirects elsewhere is not followed with credentials.
func TestGitRedirectsCarryNoCredentials(t *testing.T) {
	away := fetchtest.ServeGit(t)
	away.Repository(t, "x").Commit("main", map[string]string{"x": "away"})
	home := fetchtest.ServeGit(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case strings.HasPrefix(r.URL.Path, "/away/"):
				http.Redirect(w, r, away.URL+"/x.git"+strings.TrimPrefix(r.URL.RequestURI(), "/away"), http.StatusFound)
			case strings.HasPrefix(r.URL.Path, "/old/"):
				http.Redirect(w, r, "/x.git"+strings.TrimPrefix(r.URL.RequestURI(), "/old"), http.StatusMovedPermanently)
			case strings.HasPrefix(r.URL.Path, "/page/"):
				http.Redirect(w, r, "/welcome", http.StatusFound)
			case r.Header.Get("Authorization") == "":
				w.WriteHeader(http.StatusUnauthorized)
			default:
				next.ServeHTTP(w, r)
			}
		})
	})
	home.Repository(t, "x").Commit("main", map[string]string{"x": "home"})
	reference := func(path string) fetch.Reference {
		return fetch.Reference{
			Location:    git.Location{Remote: home.URL + path, Branch: "main"},
			Credentials: fetch.Credentials{CA: append(append([]byte{}, home.CA...), away.CA...), Username: "u", Password: "canary"},
		}
	}
	if got, _, _ := fetchInto(t, client(t), reference("/old")); got["x"] != "home" {
		t.Errorf("within the host: %v", got)
	}
	for _, path := range []string{"/away", "/page"} {
		if _, err := client(t).Resolve(t.Context(), reference(path)); err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: got %v", path, err)
		}
	}
	if seen := away.Requests(); len(seen) != 0 {
		t.Errorf("the other host saw %v", seen)
	}
}

// TestOneCommitIsFetchedAndNoHistory (AC22): One commit is fetched, without its history and its submodules.
func TestOneCommitIsFetchedAndNoHistory(t *testing.T) {
	var mu sync.Mutex
	var bodies []string
	server := fetchtest.ServeGit(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			content, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(content))
			if r.Method == http.MethodPost {
				mu.Lock()
				bodies = append(bodies, string(content))
				mu.Unlock()
			}
			next.ServeHTTP(w, r)
		})
	})
	repository := server.Repository(t, "x")
	old := repository.Commit("main", map[string]string{"x": "old"})
	repository.Commit("main", map[string]string{"x": "new"})
	for _, reference := range []git.Location{{Branch: "main"}, {Commit: fetch.Selector(old)}} {
		reference.Remote = repository.URL
		fetchInto(t, client(t), fetch.Reference{Location: reference, Credentials: fetch.Credentials{CA: server.CA}})
	}
	if len(bodies) != 2 || !strings.Contains(bodies[0], "deepen 1\n") || strings.Contains(bodies[1], "deepen") {
		t.Errorf("the server was asked: %q", bodies)
	}
}

func TestDigestDoesNotDependOnHistory(t *testing.T) {
	server := fetchtest.ServeGit(t)
	repository := server.Repository(t, "x")
	repository.Commit("main", map[string]string{"a/x": "1", "b": "2"})
	repository.Commit("other", map[string]string{"elsewhere": "3"})
	repository.CommitTree("other", repository.Tree(map[string]fetchtest.Entry{
		"deeper/a/x": {Mode: "100755", Content: "1"}, "unrelated": {Mode: "100644", Content: "4"},
	}))
	digest := func(branch, path string) string {
		_, _, digest := fetchInto(t, client(t), fetch.Reference{
			Location: git.Location{Remote: repository.URL, Branch: fetch.Selector(branch), Path: path}, Credentials: fetch.Credentials{CA: server.CA},
		})
		return digest
	}
	if one, two := digest("main", "a"), digest("other", "deeper/a"); one != two {
		t.Errorf("equal content has digests %s and %s", one, two)
	}
	if digest("main", "") == digest("main", "a") {
		t.Error("other content has the same digest")
	}
}

func TestDeltasOfGitItself(t *testing.T) {
	server := fetchtest.ServeGit(t)
	repository := server.Repository(t, "x")
	random := rand.New(rand.NewPCG(1, 2))
	base := make([]byte, 20<<10)
	for i := range base {
		base[i] = byte('a' + random.IntN(26))
	}
	want := map[string]string{}
	for i := range 30 { // similar, so that git sends most of them as deltas
		changed := bytes.Clone(base)
		copy(changed[random.IntN(len(changed)-20):], fmt.Sprintf("change %d", i))
		want[fmt.Sprintf("d%d/f%d", i%7, i)] = string(changed)
	}
	repository.Commit("main", want)
	got, _, _ := fetchInto(t, client(t), fetch.Reference{
		Location: git.Location{Remote: repository.URL, Branch: "main"}, Credentials: fetch.Credentials{CA: server.CA},
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("files differ")
	}
}

func FuzzPack(f *testing.F) {
	var seed bytes.Buffer
	p := newPack(&seed, 3)
	tree, commit := commitOf(objectHash("blob", []byte("good")))
	p.entry(commitKind, int64(len(commit)), nil, deflate(commit))
	p.entry(treeKind, int64(len(tree)), nil, deflate(tree))
	p.entry(blobKind, 4, nil, deflate([]byte("good")))
	p.end()
	f.Add(seed.Bytes())
	f.Fuzz(func(t *testing.T, content []byte) {
		if err := git.ReadPack(t, content, objectHash("commit", commit), folder(t)); err != nil && !isOurs(err) {
			t.Errorf("got %T: %v", err, err)
		}
	})
}

// TestEveryWayToWriteDotGitIsRecognised (V17): Every name that a file system treats as .git is recognised.
func TestEveryWayToWriteDotGitIsRecognised(t *testing.T) {
	for name, want := range map[string]bool{
		".git": true, ".GiT": true, "git~1": true, "GIT~12": true, ".git ": true, ".git...": true, ".git:x": true,
		".g\u200dit": true, "\ufeff.git": true, ".gi\u2064t": true,
		".gitignore": false, ".gitattributes": false, ".github": false, "git": false, "a.git": false, ".git-x": false, "git~x": false,
	} {
		if got := git.IsDotGit(name); got != want {
			t.Errorf("%q: got %v", name, got)
		}
	}
}
