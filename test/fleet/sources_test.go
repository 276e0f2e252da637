package fleet

import (
	"crypto/tls"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/trellis-addons/trellis/test/binaries"
)

// TestGit reads a commit of Commit with git itself, over https.
func TestGit(t *testing.T) {
	s := SourcesForTest(t)
	first, err := s.Commit("addons", map[string]string{"web/a.yaml": "a: 1\n", "old.yaml": "gone: soon\n"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Tag("addons", "v1", first); err != nil {
		t.Fatal(err)
	}
	second, err := s.Commit("addons", map[string]string{"web/a.yaml": "a: 2\n"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.CommitTo("addons", "side", map[string]string{"b.yaml": "b: 1\n"}); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		reference, why string
		files          map[string]string
	}{
		{"main", "a commit has exactly the files it was given", map[string]string{"web/a.yaml": "a: 2\n"}},
		{"v1", "a tag stays where it was put", map[string]string{"web/a.yaml": "a: 1\n", "old.yaml": "gone: soon\n"}},
		{"side", "branches are apart", map[string]string{"b.yaml": "b: 1\n"}},
	} {
		t.Run(test.reference, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "clone")
			cloneOf(t, s, "-b", test.reference, s.GitURL+"/addons.git", folder)
			if diff := cmp.Diff(test.files, filesBelow(t, folder)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.why, diff)
			}
		})
	}
	folder := filepath.Join(t.TempDir(), "clone")
	cloneOf(t, s, s.GitURL+"/addons.git", folder)
	log, err := exec.Command("git", "-C", folder, "log", "--format=%H").Output()
	if want := second + "\n" + first + "\n"; err != nil || string(log) != want {
		t.Errorf("history is %q, %v; want %q", log, err, want)
	}
	if got := s.Requests(); got.GitRefs == 0 || got.GitPacks == 0 || got.Index != 0 {
		t.Errorf("requests are %+v, want those of git alone", got)
	}
}

// TestForeignRepository serves a repository that another program wrote into the folder.
func TestForeignRepository(t *testing.T) {
	s := SourcesForTest(t)
	if _, err := runGit(nil, "init", "--quiet", "--bare", filepath.Join(s.GitFolder, "own.git")); err != nil {
		t.Fatal(err)
	}
	cloneOf(t, s, s.GitURL+"/own.git", filepath.Join(t.TempDir(), "clone"))
}

func cloneOf(t *testing.T, s *Sources, arguments ...string) {
	t.Helper()
	command := exec.Command("git", append([]string{"clone", "--quiet"}, arguments...)...)
	command.Env = append(os.Environ(), "GIT_SSL_CAINFO="+authorityFile(t, s))
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("git clone: %v\n%s", err, output)
	}
}

func authorityFile(t *testing.T, s *Sources) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(path, s.CA, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func filesBelow(t *testing.T, folder string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.Contains(path, "/.git/") {
			return err
		}
		content, err := os.ReadFile(path)
		files[strings.TrimPrefix(path, folder+"/")] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func chart(version string) map[string]string {
	return map[string]string{
		"Chart.yaml":          "apiVersion: v2\nname: web\nversion: " + version + "\n",
		"templates/page.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: page\ndata:\n  version: {{ .Chart.Version }}\n",
	}
}

// TestCharts reads the Helm repository with Helm's own CLI.
func TestCharts(t *testing.T) {
	s := SourcesForTest(t)
	for _, version := range []string{"1.9.0", "1.10.0"} {
		if err := s.Chart(chart(version)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(s.ChartsFolder, "half.tgz"), []byte("no archive"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := newestOf(t, s); got != "1.10.0" {
		t.Errorf("the newest version is %q, want 1.10.0", got)
	}
	if err := s.Chart(chart("2.0.0")); err != nil {
		t.Fatal(err)
	}
	if got := newestOf(t, s); got != "2.0.0" {
		t.Errorf("after one more chart the newest version is %q, want 2.0.0: the index follows", got)
	}
	if got := s.Requests(); got.Index != 2 || got.Charts != 2 {
		t.Errorf("requests are %+v, want 2 for the index and 2 for archives", got)
	}
}

// newestOf renders the chart that Helm selects when no version is requested.
func newestOf(t *testing.T, s *Sources) string {
	t.Helper()
	cache, err := binaries.Cache()
	if err != nil {
		t.Fatal(err)
	}
	helm, err := binaries.Find(cache, "helm", "")
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(helm, "template", "web", "--repo", s.ChartsURL, "--ca-file", authorityFile(t, s))
	command.Env = []string{"HOME=" + t.TempDir()}
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("helm template: %v\n%s", err, output)
	}
	_, version, _ := strings.Cut(string(output), "version: ")
	return strings.TrimSpace(version)
}

func TestRegistry(t *testing.T) {
	s := SourcesForTest(t)
	image, err := random.Image(512, 1)
	if err != nil {
		t.Fatal(err)
	}
	reference, err := name.ParseReference(s.Registry + "/addons/web:1")
	if err != nil {
		t.Fatal(err)
	}
	transport := remote.WithTransport(s.Transport(t))
	if err := remote.Write(reference, image, transport); err != nil {
		t.Fatal(err)
	}
	pulled, err := remote.Image(reference, transport)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := image.Digest()
	if got, err := pulled.Digest(); got != want {
		t.Errorf("the pulled image has digest %v, %v; want %v", got, err, want)
	}
}

func TestLoginAndConnections(t *testing.T) {
	s := SourcesForTest(t)
	client := &http.Client{Transport: s.Transport(t)}
	if got := statusOf(t, client, s.ChartsURL+"/index.yaml", ""); got != http.StatusOK {
		t.Fatalf("without login: %d", got)
	}
	s.RequireLogin(SourceCharts, "reader", "right")
	for password, want := range map[string]int{"": http.StatusUnauthorized, "wrong": http.StatusUnauthorized, "right": http.StatusOK} {
		if got := statusOf(t, client, s.ChartsURL+"/index.yaml", password); got != want {
			t.Errorf("with password %q: %d, want %d", password, got, want)
		}
	}
	held, err := tls.Dial("tcp", s.Registry, s.Transport(t).TLSClientConfig)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	s.CloseConnections()
	if _, err := held.Read(make([]byte, 1)); err == nil {
		t.Error("an open connection outlives CloseConnections")
	}
	s.Stop()
	if _, err := client.Get(s.ChartsURL + "/index.yaml"); err == nil {
		t.Error("a stopped source still answers")
	}
}

func statusOf(t *testing.T, client *http.Client, url, password string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if password != "" {
		request.SetBasicAuth("reader", password)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return response.StatusCode
}
