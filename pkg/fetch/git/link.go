package git

import (
	"context"
	"io"
	"net/url"
	"strings"

	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
)

// link is a connection to a repository, for one Resolve or Fetch.
type link interface {
	// refs opens the list of refs, and returns the repository's URL after redirects.
	refs(ctx context.Context) (io.ReadCloser, *url.URL, error)
	// upload sends a request for objects and opens the answer. It follows refs.
	upload(ctx context.Context, request []byte) (io.ReadCloser, error)
	// close ends the link at any time.
	close()
}

type wireLimits struct{ refs, pack int64 }

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

// remote reads a repository's URL, for https requests and for errors.
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
