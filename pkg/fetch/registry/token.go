package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
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
		return s.refused("", "the registry names no place where tokens are made")
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
		return &fetch.RefusedError{Subject: outbound.Shown(answer.URL), Rule: "it gives no token, or too much"}
	}
	s.token = cmp.Or(given.Token, given.AccessToken)
	return nil
}

// tokenRequest sends user and password by GET, or a refresh token by POST, only where they may go;
// else it is anonymous.
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
		return outbound.Request{}, s.refused("", "the registry names no place where tokens are made")
	}
	query.Set("scope", scope)
	if service != "" {
		query.Set("service", service)
	}
	at.RawQuery = query.Encode()
	return outbound.Request{Method: http.MethodGet, URL: &at, Limit: tokenLimit, Origin: origin, Credentials: s.userAndPassword()}, nil
}

// tokenProblem: a realm's refusal of an anonymous token says nothing about credentials that it did
// not get.
func (s *Session) tokenProblem(err error) error {
	if _, unauthorized := errors.AsType[*fetch.UnauthorizedError](err); unauthorized && s.denied != "" {
		return s.unauthorized(&outbound.Answer{URL: s.repository.root()})
	}
	return err
}
