package fetch_test

import (
	"testing"

	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/git"
	"github.com/trellis-addons/trellis/pkg/fetch/helmrepo"
	"github.com/trellis-addons/trellis/pkg/fetch/image"
)

func TestHost(t *testing.T) {
	inGit := func(remote string) fetch.Reference {
		return fetch.Reference{Location: git.Location{Remote: remote}}
	}
	inImage := func(name string) fetch.Reference {
		return fetch.Reference{Location: image.Location{Image: image.Name(name)}}
	}
	for want, references := range map[string][]fetch.Reference{
		"git.example.com":      {inGit("https://git.example.com/a"), inGit("git@git.example.com:a/b"), inGit("ssh://git@git.example.com/a")},
		"git.example.com:2222": {inGit("ssh://git@git.example.com:2222/a")},
		"index.docker.io":      {inImage("alpine"), inImage("library/alpine:3"), inImage("alpine:3")},
		"registry:5000":        {inImage("registry:5000/a:v1")},
		"r.example.com": {
			inImage("r.example.com/a/b@sha256:00"), {Location: helmrepo.Location{URL: "oci://r.example.com/charts"}},
			{Location: helmrepo.Location{URL: "https://r.example.com/charts"}},
		},
		"": {inGit("https://[/"), inGit("")},
	} {
		for _, reference := range references {
			if got := reference.Location.Host(); got != want {
				t.Errorf("%+v: got %q, want %q", reference, got, want)
			}
		}
	}
}

// TestKeysDistinguishReferences (AC29): Every difference between references results in another key: content of one is
// never returned for another.
func TestKeysDistinguishReferences(t *testing.T) {
	key := map[[32]byte]string{}
	for why, reference := range map[string]fetch.Reference{
		"git":              {Location: git.Location{Remote: "x", Path: "y"}},
		"git elsewhere":    {Location: git.Location{Remote: "xy"}},
		"image":            {Location: image.Location{Image: "x", Path: "y"}},
		"image elsewhere":  {Location: image.Location{Image: "x", Path: "z"}},
		"another image":    {Location: image.Location{Image: "y", Path: "y"}},
		"helm":             {Location: helmrepo.Location{URL: "x", Chart: "y"}},
		"with a user":      {Location: git.Location{Remote: "x", Path: "y"}, Credentials: fetch.Credentials{Username: "u"}},
		"with a token":     {Location: git.Location{Remote: "x", Path: "y"}, Credentials: fetch.Credentials{BearerToken: "u"}},
		"with a key":       {Location: git.Location{Remote: "x", Path: "y"}, Credentials: fetch.Credentials{PrivateKey: []byte("u")}},
		"with known_hosts": {Location: git.Location{Remote: "x", Path: "y"}, Credentials: fetch.Credentials{KnownHosts: []byte("u")}},
		"with a config":    {Location: git.Location{Remote: "x", Path: "y"}, Credentials: fetch.Credentials{DockerConfig: []byte("u")}},
		"with hosts":       {Location: git.Location{Remote: "x", Path: "y"}, Credentials: fetch.Credentials{Hosts: []string{"u"}}},
	} {
		if other, taken := key[kinds.Key(reference)]; taken {
			t.Errorf("%s has the key of %s", why, other)
		}
		key[kinds.Key(reference)] = why
	}
}

// TestPublicCredentialsHoldNoSecret (AC29): The public part of credentials has no secret.
func TestPublicCredentialsHoldNoSecret(t *testing.T) {
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
