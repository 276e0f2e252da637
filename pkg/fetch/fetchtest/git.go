package fetchtest

import (
	"net/http"
	"net/http/cgi"
	"os"
	"path/filepath"
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

// Repository makes an empty repository.
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
