package registry

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/trellis-addons/trellis/pkg/fetch"
)

// SecretKeys are the keys of source Secrets that loginFor reads.
func SecretKeys() []fetch.SecretKey {
	return append(fetch.LoginKeys(), fetch.SecretKey{
		Name: ".dockerconfigjson", Read: func(into *fetch.Credentials, content []byte) { into.DockerConfig = content },
	})
}

type login struct {
	username, password string
	// bearer is sent as it is; refresh is exchanged for a token.
	bearer, refresh string
}

func (l login) isEmpty() bool { return l == login{} }

// loginFor picks the credentials for a repository: a token, else user and password, else the docker
// config.
func loginFor(credentials fetch.Credentials, repository Repository) (login, error) {
	switch {
	case credentials.BearerToken != "":
		return login{bearer: credentials.BearerToken}, nil
	case credentials.Username != "" || len(credentials.DockerConfig) == 0:
		return login{username: credentials.Username, password: credentials.Password}, nil
	}
	return fromDockerConfig(credentials.DockerConfig, repository)
}

// dockerAuth is an entry of a docker config. Credential helpers are programs, so they are ignored.
type dockerAuth struct {
	Auth          string `json:"auth"`
	Username      string `json:"username"`
	Password      string `json:"password"`
	IdentityToken string `json:"identitytoken"`
	RegistryToken string `json:"registrytoken"`
}

// fromDockerConfig uses the entry with the longest key that matches the repository.
func fromDockerConfig(content []byte, repository Repository) (login, error) {
	var config struct {
		Auths map[string]*dockerAuth `json:"auths"`
	}
	if json.Unmarshal(content, &config) != nil { // whose error may quote it
		return login{}, refusedConfig("it can't be read")
	}
	var best *dockerAuth
	length := -1
	for key, entry := range config.Auths {
		key = configKey(key)
		if entry != nil && leadsTo(key, repository) && len(key) > length {
			best, length = entry, len(key)
		}
	}
	if best == nil {
		return login{}, nil
	}
	return best.login()
}

func (a *dockerAuth) login() (login, error) {
	found := login{username: a.Username, password: a.Password, bearer: a.RegistryToken, refresh: a.IdentityToken}
	if a.Auth == "" || a.Username != "" {
		return found, nil
	}
	decoded, err := base64.StdEncoding.DecodeString(a.Auth)
	if err != nil {
		decoded, err = base64.RawStdEncoding.DecodeString(a.Auth)
	}
	user, password, ok := strings.Cut(string(decoded), ":")
	if err != nil || !ok {
		return login{}, refusedConfig("an entry's auth is not user:password in base64")
	}
	found.username, found.password = user, strings.TrimRight(password, "\x00")
	return found, nil
}

func refusedConfig(rule string) error {
	return &fetch.RefusedError{Subject: "the docker config of the Secret", Rule: rule}
}

// configKey normalises a key to host[/path]: docker writes URLs for some registries.
func configKey(key string) string {
	for _, scheme := range []string{"https://", "http://"} {
		key = strings.TrimPrefix(key, scheme)
	}
	key = strings.TrimSuffix(key, "/")
	for _, version := range []string{"/v1", "/v2"} {
		key = strings.TrimSuffix(key, version)
	}
	host, path, _ := strings.Cut(key, "/")
	host = strings.ToLower(host)
	switch host {
	case "docker.io", "registry-1.docker.io":
		host = "index.docker.io"
	}
	if path == "" {
		return host
	}
	return host + "/" + path
}

// leadsTo compares whole components: registry/team does not match registry/teams.
func leadsTo(key string, repository Repository) bool {
	return strings.HasPrefix(strings.ToLower(repository.Host)+"/"+repository.Name+"/", key+"/")
}
