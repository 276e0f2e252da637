package registry

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
	"github.com/trellis-addons/trellis/pkg/values/strictyaml"
)

const tokenLimit = 1 << 20

type challenge struct{ scheme, realm, service string }

var (
	schemePattern    = regexp.MustCompile(`^\s*([A-Za-z]+)(\s+|$)`)
	parameterPattern = regexp.MustCompile(`([A-Za-z]+)\s*=\s*"([^"]*)"`)
)

// readChallenges reads WWW-Authenticate headers, with one challenge each.
func readChallenges(headers []string) []challenge {
	var found []challenge
	for _, header := range headers {
		scheme := schemePattern.FindStringSubmatch(header)
		if scheme == nil {
			continue
		}
		read := challenge{scheme: strings.ToLower(scheme[1])}
		for _, parameter := range parameterPattern.FindAllStringSubmatch(header, 16) {
			switch strings.ToLower(parameter[1]) {
			case "realm":
				read.realm = parameter[2]
			case "service":
				read.service = parameter[2]
			}
		}
		found = append(found, read)
	}
	return found
}

func (s *Session) logIn(ctx context.Context, headers []string) error {
	challenges := readChallenges(headers)
	for _, asked := range challenges {
		if asked.scheme == "bearer" {
			return s.getToken(ctx, asked)
		}
	}
	for _, asked := range challenges {
		if asked.scheme == "basic" && s.login.username != "" {
			s.basic = true
		}
	}
	return nil
}

func (s *Session) getToken(ctx context.Context, asked challenge) error {
	realm, err := url.Parse(asked.realm)
	if err != nil || realm.User != nil || realm.Fragment != "" || len(asked.realm) > referenceLimit {
		return s.refused("", "the registry names no address that issues tokens")
	}
	request, err := s.tokenRequest(realm, asked.service)
	if err != nil {
		return err
	}
	answer, err := s.network.Do(ctx, request)
	if err != nil {
		return s.tokenProblem(err)
	}
	defer answer.Body.Close()
	if answer.Status != http.StatusOK {
		return &fetch.UnavailableError{
			Subject: outbound.Shown(answer.URL), Err: fmt.Errorf("the server answers a request for a token with status %d", answer.Status),
		}
	}
	var given struct {
		Token       string `json:"token"`
		AccessToken string `json:"access_token"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&given); err != nil {
		return &fetch.RefusedError{Subject: outbound.Shown(answer.URL), Rule: "it issues no token, or one that is too long"}
	}
	s.token = cmp.Or(given.Token, given.AccessToken)
	return nil
}

// tokenRequest sends user and password by GET or a refresh token by POST, only if allowed.
func (s *Session) tokenRequest(realm *url.URL, service string) (outbound.Request, error) {
	origin := s.repository.root()
	scope := "repository:" + s.repository.Name + ":pull"
	allowed := outbound.MeantFor(s.credentials, origin, realm)
	if !allowed && !s.login.isEmpty() {
		s.denied = realm.Host
	}
	if allowed && s.login.refresh != "" {
		form := url.Values{
			"grant_type": {"refresh_token"}, "service": {service}, "scope": {scope}, "client_id": {"trellis"},
			"refresh_token": {s.login.refresh},
		}
		return outbound.Request{
			Method: http.MethodPost, URL: realm, Body: []byte(form.Encode()), Limit: tokenLimit, Origin: origin,
			Header:      http.Header{"Content-Type": {"application/x-www-form-urlencoded"}},
			Credentials: fetch.Credentials{CA: s.credentials.CA},
		}, nil
	}
	at := *realm
	query, err := url.ParseQuery(realm.RawQuery)
	if err != nil {
		return outbound.Request{}, s.refused("", "the registry names no address that issues tokens")
	}
	query.Set("scope", scope)
	if service != "" {
		query.Set("service", service)
	}
	at.RawQuery = query.Encode()
	return outbound.Request{Method: http.MethodGet, URL: &at, Limit: tokenLimit, Origin: origin, Credentials: s.userAndPassword()}, nil
}

// tokenProblem: a refused anonymous token says nothing about credentials that were not sent.
func (s *Session) tokenProblem(err error) error {
	if _, unauthorized := errors.AsType[*fetch.UnauthorizedError](err); unauthorized && s.denied != "" {
		return s.unauthorized(&outbound.Answer{URL: s.repository.root()})
	}
	return err
}

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

// loginFor picks credentials for a repository: a token, user and password, or the docker config.
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
	if strictyaml.Elements(content) > elementsLimit {
		return login{}, refusedConfig(fmt.Sprintf("it has more than %d elements", elementsLimit))
	}
	if json.Unmarshal(content, &config) != nil { // its error may quote the config
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
