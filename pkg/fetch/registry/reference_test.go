package registry_test

import (
	"strings"
	"testing"

	"github.com/trellis-addons/trellis/pkg/fetch/registry"
)

// TestReferencesAreReadInOneWay (AC13): Ambiguous references of images are refused.
func TestReferencesAreReadInOneWay(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0a", 32)
	for text, want := range map[string]registry.Reference{
		"r.example.com/a/b:v1": {Repository: registry.Repository{Host: "r.example.com", Name: "a/b"}, Tag: "v1"},
		"r.example.com:5000/a:v1@" + digest: {
			Repository: registry.Repository{Host: "r.example.com:5000", Name: "a"}, Tag: "v1", Digest: digest,
		},
		"r.example.com/a@" + digest: {Repository: registry.Repository{Host: "r.example.com", Name: "a"}, Digest: digest},
		"alpine:3":                  {Repository: registry.Repository{Host: "index.docker.io", Name: "library/alpine"}, Tag: "3"},
		"docker.io/team/x:3":        {Repository: registry.Repository{Host: "index.docker.io", Name: "team/x"}, Tag: "3"},
		"[::1]:5000/a:v1":           {Repository: registry.Repository{Host: "[::1]:5000", Name: "a"}, Tag: "v1"},
	} {
		got, err := registry.Parse(text)
		if err != nil || got != want {
			t.Errorf("%q: got %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"", "alpine", "r.example.com/a", "r.example.com:5000/a", "r.example.com/a:", "r.example.com/a@", "r.example.com/a@sha256:00",
		"r.example.com/a@sha512:" + strings.Repeat("0a", 64), "r.example.com/a@md5:00", "r.example.com/A:v1", "r.example.com/a b:v1",
		"https://r.example.com/a:v1", "file:///etc/passwd", "oci://r.example.com/a:v1", "user:canary@r.example.com/a:v1", "user@r.example.com/a:v1",
		"r.example.com/../a:v1", "r.example.com/a:v1\n", "r.example.com/a:v1\x00", "r.example.com/ä:v1", "-oProxyCommand=x/a:v1",
		"r.example.com/a?b:v1", "r.example.com/a#b:v1", "r.example.com/a:" + strings.Repeat("v", 129), strings.Repeat("a", 2000) + ":v1",
		"r.example.com/a:../../b", "r.example.com/a:..", "r.example.com/a:.", "r.example.com/a:-v", "r.example.com/a/:v1", "/a:v1", "r.example.com//a:v1",
	} {
		got, err := registry.Parse(text)
		if !isRefused(err) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%q: got %+v, %v", text, got, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"r.example.com/a/b:v1", "alpine:3", "a@sha256:" + strings.Repeat("0a", 32), "u:p@r/a:v", "[::1]:5000/a:v1", "r:5000/a", "http://r/a:v1",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		read, err := registry.Parse(text)
		if err != nil {
			if !isRefused(err) || len(err.Error()) > 1024 {
				t.Errorf("%q: got %v", text, err)
			}
			return
		}
		host, name := read.Repository.Host, read.Repository.Name
		switch {
		case host == "" || strings.ContainsAny(host, "/@?#%\\ ") || strings.HasPrefix(host, "-"):
			t.Errorf("%q: host %q", text, host)
		case name == "" || strings.Contains(name, "..") || strings.Contains("/"+name+"/", "//") || strings.ContainsAny(name, "?#%\\:@ "):
			t.Errorf("%q: name %q", text, name)
		case read.Digest != "" && !registry.IsDigest(read.Digest), read.Word() == "":
			t.Errorf("%q: digest %q", text, read.Digest)
		case strings.ContainsAny(read.Tag, "/?#%\\:@ "):
			t.Errorf("%q: tag %q", text, read.Tag)
		case !strings.Contains(text, name[strings.LastIndexByte(name, '/')+1:]):
			t.Errorf("%q: name %q came from elsewhere", text, name)
		}
	})
}

func TestReferencesWithoutRevision(t *testing.T) {
	for image, want := range map[string]string{
		"alpine": "alpine", "alpine:3": "alpine", "registry:5000/a": "registry:5000/a", "registry:5000/a:v1": "registry:5000/a",
		"registry:5000/a:v1@sha256:00": "registry:5000/a", "r/a@sha256:00": "r/a",
	} {
		if got := registry.WithoutRevision(image); got != want {
			t.Errorf("%q: got %q", image, got)
		}
	}
}
