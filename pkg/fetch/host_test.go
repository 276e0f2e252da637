package fetch_test

import (
	"testing"

	"github.com/trellis-addons/trellis/pkg/fetch"
)

func TestHost(t *testing.T) {
	git := func(remote string) fetch.Reference {
		return fetch.Reference{Git: &fetch.GitReference{Remote: remote}}
	}
	image := func(name string) fetch.Reference {
		return fetch.Reference{Image: &fetch.ImageReference{Image: name}}
	}
	for want, references := range map[string][]fetch.Reference{
		"git.example.com":      {git("https://git.example.com/a"), git("git@git.example.com:a/b"), git("ssh://git@git.example.com/a")},
		"git.example.com:2222": {git("ssh://git@git.example.com:2222/a")},
		"index.docker.io":      {image("alpine"), image("library/alpine:3"), image("alpine:3")},
		"registry:5000":        {image("registry:5000/a:v1")},
		"r.example.com": {
			image("r.example.com/a/b@sha256:00"), {Helm: &fetch.HelmReference{URL: "oci://r.example.com/charts"}},
			{Helm: &fetch.HelmReference{URL: "https://r.example.com/charts"}},
		},
		"": {{}, git("https://[/"), git("")},
	} {
		for _, reference := range references {
			if got := reference.Host(); got != want {
				t.Errorf("%+v: got %q, want %q", reference, got, want)
			}
		}
	}
}

func TestRepository(t *testing.T) {
	for image, want := range map[string]string{
		"alpine": "alpine", "alpine:3": "alpine", "registry:5000/a": "registry:5000/a", "registry:5000/a:v1": "registry:5000/a",
		"registry:5000/a:v1@sha256:00": "registry:5000/a", "r/a@sha256:00": "r/a",
	} {
		if got := (&fetch.ImageReference{Image: image}).Repository(); got != want {
			t.Errorf("%q: got %q", image, got)
		}
	}
}

// Whatever differs in a reference gives it another key: content of one is never handed out for another.
func TestAC29KeysTellReferencesApart(t *testing.T) {
	key := map[[32]byte]string{}
	for why, reference := range map[string]fetch.Reference{
		"git":              {Git: &fetch.GitReference{Remote: "x", Path: "y"}},
		"git elsewhere":    {Git: &fetch.GitReference{Remote: "xy"}},
		"image":            {Image: &fetch.ImageReference{Image: "x", Path: "y"}},
		"image elsewhere":  {Image: &fetch.ImageReference{Image: "x", Path: "z"}},
		"another image":    {Image: &fetch.ImageReference{Image: "y", Path: "y"}},
		"helm":             {Helm: &fetch.HelmReference{URL: "x", Chart: "y"}},
		"with a user":      {Git: &fetch.GitReference{Remote: "x", Path: "y"}, Credentials: fetch.Credentials{Username: "u"}},
		"with a token":     {Git: &fetch.GitReference{Remote: "x", Path: "y"}, Credentials: fetch.Credentials{BearerToken: "u"}},
		"with a key":       {Git: &fetch.GitReference{Remote: "x", Path: "y"}, Credentials: fetch.Credentials{PrivateKey: []byte("u")}},
		"with known_hosts": {Git: &fetch.GitReference{Remote: "x", Path: "y"}, Credentials: fetch.Credentials{KnownHosts: []byte("u")}},
		"with a config":    {Git: &fetch.GitReference{Remote: "x", Path: "y"}, Credentials: fetch.Credentials{DockerConfig: []byte("u")}},
		"with hosts":       {Git: &fetch.GitReference{Remote: "x", Path: "y"}, Credentials: fetch.Credentials{Hosts: []string{"u"}}},
	} {
		if other, taken := key[reference.Key()]; taken {
			t.Errorf("%s has the key of %s", why, other)
		}
		key[reference.Key()] = why
	}
}

func TestAC29PublicHoldsNoSecret(t *testing.T) {
	secret := []byte("canary")
	for why, credentials := range map[string]fetch.Credentials{
		"a user": {Username: "canary"}, "a password": {Password: "canary"}, "a token": {BearerToken: "canary"},
		"a key": {PrivateKey: secret}, "a config": {DockerConfig: secret},
	} {
		if !credentials.IsSecret() || credentials.Public().IsSecret() {
			t.Errorf("%s: is secret: %v, is so in public: %v", why, credentials.IsSecret(), credentials.Public().IsSecret())
		}
	}
	if (fetch.Credentials{CA: secret, KnownHosts: secret, Hosts: []string{"x"}}).IsSecret() {
		t.Error("certificates, host keys and hosts are no secrets")
	}
}
