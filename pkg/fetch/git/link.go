package git

import (
	"context"
	"io"
	"net/url"
	"strings"

	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
)

// link is a way to a repository, for one look or one fetch.
type link interface {
	// refs opens the list of refs, and says the URL of the repository, after redirects.
	refs(ctx context.Context) (io.ReadCloser, *url.URL, error)
	// upload sends a request for objects and opens the answer. It follows refs.
	upload(ctx context.Context, request []byte) (io.ReadCloser, error)
	// close ends the link, in the middle of what it carries too.
	close()
}

type wireLimits struct{ refs, pack int64 }

// link makes the link for a reference. Nothing is sent yet.
func (s *Source) link(location Location, credentials fetch.Credentials) (link, error) {
	if isSSH(location.Remote) {
		return newSSHLink(s.network, s.wire, location, credentials)
	}
	origin, err := s.remote(location.Remote)
	if err != nil {
		return nil, err
	}
	return &httpLink{network: s.network, origin: origin, credentials: credentials, limits: s.wire}, nil
}

// remote reads the URL of a repository, for requests of https and for errors.
func (s *Source) remote(text string) (*url.URL, error) {
	if isSSH(text) {
		at, err := parseSSH(text)
		if err != nil {
			return nil, err
		}
		return at.url, nil
	}
	at, err := s.network.ParseURL(text)
	if err != nil {
		return nil, err
	}
	at.Path, at.RawPath = strings.TrimRight(at.Path, "/"), ""
	return at, nil
}

func (s *Source) shown(location Location) string {
	at, err := s.remote(location.Remote)
	if err != nil {
		return "the repository"
	}
	return outbound.Shown(at)
}
