package fetch_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trellis-addons/trellis/pkg/fetch"
)

func mirrors(t *testing.T, text string) fetch.Mirrors {
	t.Helper()
	var made fetch.Mirrors
	if err := made.Set(text); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return made
}

func TestMirrorsOfReferences(t *testing.T) {
	made := mirrors(t, "https://github.com/=https://git.corp/hub/,https://github.com/special=https://special.corp/x,"+
		"https://charts.example.com=https://charts.corp/example,oci://ghcr.io/team=registry.corp:5000/team,quay.io=registry.corp:5000/quay,"+
		"ssh://git@git.example.com/=ssh://git@git.corp/,https://within.example.com=https://within.example.com/mirror")
	git := func(remote string) fetch.Reference {
		return fetch.Reference{Git: &fetch.GitReference{Remote: remote, Branch: "main", Path: "p"}}
	}
	image := func(image string) fetch.Reference {
		return fetch.Reference{Image: &fetch.ImageReference{Image: image, Path: "p"}}
	}
	helm := func(url string) fetch.Reference {
		return fetch.Reference{Helm: &fetch.HelmReference{URL: url, Chart: "c", Version: "1.0.0"}}
	}
	for _, test := range []struct {
		why         string
		given, want fetch.Reference
	}{
		{"git below a host", git("https://github.com/a/b.git"), git("https://git.corp/hub/a/b.git")},
		{"hosts have no case", git("https://GitHub.com/a/b.git"), git("https://git.corp/hub/a/b.git")},
		{"paths have one", git("https://github.com/Special/b.git"), git("https://git.corp/hub/Special/b.git")},
		{"the longest prefix", git("https://github.com/special/b.git"), git("https://special.corp/x/b.git")},
		{"a prefix ends where a name ends", git("https://github.com/specially/b.git"), git("https://git.corp/hub/specially/b.git")},
		{"another host that begins alike", git("https://github.com.evil/x"), git("https://github.com.evil/x")},
		{"another port is another server", helm("https://charts.example.com:8443/x"), helm("https://charts.example.com:8443/x")},
		{"another scheme", git("http://github.com/a"), git("http://github.com/a")},
		{"ssh", git("ssh://git@git.example.com/a.git"), git("ssh://git@git.corp/a.git")},
		{"a repository as a whole", helm("https://charts.example.com"), helm("https://charts.corp/example")},
		{"an image by tag", image("ghcr.io/team/app:1.0"), image("registry.corp:5000/team/app:1.0")},
		{"an image that is the prefix", image("ghcr.io/team:1.0"), image("registry.corp:5000/team:1.0")},
		{"an image by digest", image("ghcr.io/team@sha256:aa"), image("registry.corp:5000/team@sha256:aa")},
		{"a name that begins alike", image("ghcr.io/teams/app"), image("ghcr.io/teams/app")},
		{"a registry as a whole", image("quay.io/a/b:2"), image("registry.corp:5000/quay/a/b:2")},
		{"a registry on another port", image("quay.io:5000/a/b:2"), image("quay.io:5000/a/b:2")},
		{"charts in a registry", helm("oci://ghcr.io/team/charts"), helm("oci://registry.corp:5000/team/charts")},
		{"images are no URLs", image("github.com/a/b"), image("github.com/a/b")},
		{"a mirror below what it stands for", git("https://within.example.com/a"), git("https://within.example.com/mirror/a")},
		{"and not twice", git("https://within.example.com/mirror/a"), git("https://within.example.com/mirror/a")},
	} {
		given := test.given
		if diff := cmp.Diff(test.want, made.Reference(given)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.why, diff)
		}
	}
}

func TestMirrorsGetNoCredentialsUnasked(t *testing.T) {
	made := mirrors(t, "https://github.com=https://git.corp")
	reference := fetch.Reference{
		Git:         &fetch.GitReference{Remote: "https://github.com/x", Branch: "main"},
		Credentials: fetch.Credentials{Username: "u", Password: "p"},
	}
	if got := made.Reference(reference).Credentials.Hosts; !cmp.Equal(got, []string{"github.com"}) {
		t.Errorf("credentials without hosts are for %v", got)
	}
	reference.Credentials.Hosts = []string{"git.corp"}
	if got := made.Reference(reference).Credentials.Hosts; !cmp.Equal(got, []string{"git.corp"}) {
		t.Errorf("credentials that name the mirror are for %v", got)
	}
	if reference.Git.Remote != "https://github.com/x" {
		t.Error("the reference that was given changed")
	}
}

func TestMirrorsRefused(t *testing.T) {
	for _, text := range []string{
		"", "https://a", "=https://b", "https://a=", "https://a=b", "a=https://b", "https://u:canary@a=https://b",
		"https://a=https://u:canary@b", "https://a=https://b?canary=1", "https://a=https://", "a=b,canary",
	} {
		var made fetch.Mirrors
		if err := made.Set(text); err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%q: got %v", text, err)
		}
	}
	var none *fetch.Mirrors
	if none.String() != "" {
		t.Error("no mirrors have a text")
	}
	made := mirrors(t, "a=b,https://c=https://d")
	if again := mirrors(t, made.String()); !cmp.Equal(made, again) {
		t.Errorf("written and read again: %v", again)
	}
}
