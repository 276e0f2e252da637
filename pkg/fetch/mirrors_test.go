package fetch_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/git"
	"github.com/trellis-addons/trellis/pkg/fetch/helmrepo"
	"github.com/trellis-addons/trellis/pkg/fetch/image"
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
	inGit := func(remote string) fetch.Reference {
		return fetch.Reference{Location: git.Location{Remote: remote, Branch: "main", Path: "p"}}
	}
	inImage := func(name string) fetch.Reference {
		return fetch.Reference{Location: image.Location{Image: image.Name(name), Path: "p"}}
	}
	chart := func(url string) fetch.Reference {
		return fetch.Reference{Location: helmrepo.Location{URL: url, Chart: "c", Version: "1.0.0"}}
	}
	for _, test := range []struct {
		why         string
		given, want fetch.Reference
	}{
		{"git below a host", inGit("https://github.com/a/b.git"), inGit("https://git.corp/hub/a/b.git")},
		{"hosts have no case", inGit("https://GitHub.com/a/b.git"), inGit("https://git.corp/hub/a/b.git")},
		{"paths have one", inGit("https://github.com/Special/b.git"), inGit("https://git.corp/hub/Special/b.git")},
		{"the longest prefix", inGit("https://github.com/special/b.git"), inGit("https://special.corp/x/b.git")},
		{"a prefix ends where a name ends", inGit("https://github.com/specially/b.git"), inGit("https://git.corp/hub/specially/b.git")},
		{"another host that begins alike", inGit("https://github.com.evil/x"), inGit("https://github.com.evil/x")},
		{"another port is another server", chart("https://charts.example.com:8443/x"), chart("https://charts.example.com:8443/x")},
		{"another scheme", inGit("http://github.com/a"), inGit("http://github.com/a")},
		{"ssh", inGit("ssh://git@git.example.com/a.git"), inGit("ssh://git@git.corp/a.git")},
		{"a repository as a whole", chart("https://charts.example.com"), chart("https://charts.corp/example")},
		{"an image by tag", inImage("ghcr.io/team/app:1.0"), inImage("registry.corp:5000/team/app:1.0")},
		{"an image that is the prefix", inImage("ghcr.io/team:1.0"), inImage("registry.corp:5000/team:1.0")},
		{"an image by digest", inImage("ghcr.io/team@sha256:aa"), inImage("registry.corp:5000/team@sha256:aa")},
		{"a name that begins alike", inImage("ghcr.io/teams/app"), inImage("ghcr.io/teams/app")},
		{"a registry as a whole", inImage("quay.io/a/b:2"), inImage("registry.corp:5000/quay/a/b:2")},
		{"a registry on another port", inImage("quay.io:5000/a/b:2"), inImage("quay.io:5000/a/b:2")},
		{"charts in a registry", chart("oci://ghcr.io/team/charts"), chart("oci://registry.corp:5000/team/charts")},
		{"images are no URLs", inImage("github.com/a/b"), inImage("github.com/a/b")},
		{"a mirror below what it stands for", inGit("https://within.example.com/a"), inGit("https://within.example.com/mirror/a")},
		{"and not twice", inGit("https://within.example.com/mirror/a"), inGit("https://within.example.com/mirror/a")},
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
		Location:    git.Location{Remote: "https://github.com/x", Branch: "main"},
		Credentials: fetch.Credentials{Username: "u", Password: "p"},
	}
	if got := made.Reference(reference).Credentials.Hosts; !cmp.Equal(got, []string{"github.com"}) {
		t.Errorf("credentials without hosts are for %v", got)
	}
	reference.Credentials.Hosts = []string{"git.corp"}
	if got := made.Reference(reference).Credentials.Hosts; !cmp.Equal(got, []string{"git.corp"}) {
		t.Errorf("credentials that name the mirror are for %v", got)
	}
	if reference.Location.(git.Location).Remote != "https://github.com/x" {
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
