package registry

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
)

// manifestLimit bounds a manifest or index in bytes. Registries accept 4 MiB; manifests of images and charts have
// some KiB, and an index of a thousand platforms has half a MiB.
const manifestLimit = 1 << 20

// Session reads one repository for one Resolve or Fetch. It is not safe for concurrent use.
type Session struct {
	network     *outbound.Network
	repository  Repository
	credentials fetch.Credentials
	login       login

	token  string // from the realm
	basic  bool   // the registry requires user and password directly
	denied string // the realm that the credentials are not for
}

// Open creates a session without sending anything.
func Open(network *outbound.Network, repository Repository, credentials fetch.Credentials) (*Session, error) {
	login, err := loginFor(credentials, repository)
	if err != nil {
		return nil, err
	}
	return &Session{network: network, repository: repository, credentials: credentials, login: login, token: login.bearer}, nil
}

// Manifest gets a manifest by tag or digest.
func (s *Session) Manifest(ctx context.Context, word string) (*Manifest, error) {
	answer, err := s.get(ctx, "manifests/"+word, manifestLimit)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	kind := "tag"
	if strings.Contains(word, ":") {
		kind = "digest"
	}
	if err := answer.Problem(fmt.Sprintf("%s %q in repository %s", kind, word, s.repository)); err != nil {
		return nil, err
	}
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	digest := fmt.Sprintf("sha256:%x", sha256.Sum256(content))
	if IsDigest(word) && digest != word {
		return nil, s.refused(word, "the registry's content does not match this digest")
	}
	return s.readManifest(content, digest, answer.Header.Get("Content-Type"))
}

// Blob downloads at most limit bytes and checks the digest; after an error they are invalid.
func (s *Session) Blob(ctx context.Context, digest string, limit int64, into io.Writer) error {
	if !IsDigest(digest) {
		return s.refused("", "the digest of a blob is not a SHA-256")
	}
	answer, err := s.get(ctx, "blobs/"+digest, limit)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if err := answer.Problem(fmt.Sprintf("blob %q in repository %s", digest, s.repository)); err != nil {
		return err
	}
	hasher := sha256.New()
	if _, err := io.Copy(io.MultiWriter(into, hasher), answer.Body); err != nil {
		return err
	}
	if fmt.Sprintf("sha256:%x", hasher.Sum(nil)) != digest {
		return s.refused(digest, "the registry's content does not match this digest")
	}
	return nil
}

func (s *Session) refused(what, rule string) error {
	return &fetch.RefusedError{Subject: strings.TrimSpace(s.repository.String() + " " + what), Rule: rule}
}

func (s *Session) get(ctx context.Context, what string, limit int64) (*outbound.Answer, error) {
	answer, err := s.ask(ctx, what, limit)
	if err != nil || answer.Status != http.StatusUnauthorized {
		return answer, err
	}
	answer.Body.Close()
	// Only the registry itself may request credentials, and only once.
	if !isAt(answer.URL, s.repository.root()) || s.token != "" || s.basic {
		return nil, s.unauthorized(answer)
	}
	if err := s.logIn(ctx, answer.Header.Values("WWW-Authenticate")); err != nil {
		return nil, err
	}
	if s.token == "" && !s.basic {
		return nil, s.unauthorized(answer)
	}
	answer, err = s.ask(ctx, what, limit)
	if err != nil || answer.Status != http.StatusUnauthorized {
		return answer, err
	}
	answer.Body.Close()
	return nil, s.unauthorized(answer)
}

func (s *Session) unauthorized(answer *outbound.Answer) error {
	if s.denied != "" {
		return &fetch.RefusedError{Subject: s.repository.String(), Rule: fmt.Sprintf(
			"the registry gets its tokens from %q, and credentials are sent there only if annotation hosts of the Secret lists it", s.denied)}
	}
	return &fetch.UnauthorizedError{Subject: outbound.Shown(answer.URL), Status: answer.Status, Sent: answer.Sent && !s.login.isEmpty()}
}

var accepted = strings.Join([]string{
	MediaTypeImage, MediaTypeIndex, MediaTypeDockerImage, MediaTypeDockerList,
}, ", ")

func (s *Session) ask(ctx context.Context, what string, limit int64) (*outbound.Answer, error) {
	at := s.repository.root()
	at.Path = "/v2/" + s.repository.Name + "/" + what
	request := outbound.Request{
		Method: http.MethodGet, URL: at, Limit: limit, Origin: s.repository.root(), OtherHosts: true, Challenged: true,
		Header: http.Header{}, Credentials: fetch.Credentials{CA: s.credentials.CA},
	}
	if strings.HasPrefix(what, "manifests/") {
		request.Header.Set("Accept", accepted)
	}
	switch {
	case s.token != "":
		request.Credentials.BearerToken = s.token
		if s.token == s.login.bearer {
			request.Credentials.Hosts = s.credentials.Hosts
		}
	case s.basic:
		request.Credentials = s.userAndPassword()
	}
	return s.network.Do(ctx, request)
}

func (s *Session) userAndPassword() fetch.Credentials {
	return fetch.Credentials{
		Username: s.login.username, Password: s.login.password, CA: s.credentials.CA, Hosts: s.credentials.Hosts,
	}
}

func isAt(at, root *url.URL) bool {
	return at.Scheme == root.Scheme && strings.EqualFold(at.Host, root.Host)
}
