package fetch

import (
	"net/url"
	"strings"
)

// dockerHub is where images live whose reference names no host.
const dockerHub = "index.docker.io"

// Kinds counts the kinds that are set; one is right.
func (r Reference) Kinds() int {
	count := 0
	for _, set := range []bool{r.Git != nil, r.Image != nil, r.Helm != nil} {
		if set {
			count++
		}
	}
	return count
}

// Host is the host, with its port where there is one, that a reference leads to; "" where it can't be told. It is for
// sharing out work and for counting, not for deciding where credentials go.
func (r Reference) Host() string {
	switch {
	case r.Git != nil:
		return hostOfURL(r.Git.Remote)
	case r.Helm != nil:
		return hostOfURL(r.Helm.URL)
	case r.Image != nil:
		first, _, more := strings.Cut(r.Image.Image, "/")
		if !more || !strings.ContainsAny(first, ".:") && first != "localhost" {
			return dockerHub
		}
		return first
	}
	return ""
}

// hostOfURL takes the short form of ssh remotes, user@host:path, too.
func hostOfURL(text string) string {
	if !strings.Contains(text, "://") {
		_, rest, ok := strings.Cut(text, "@")
		host, _, _ := strings.Cut(rest, ":")
		if !ok {
			return ""
		}
		return host
	}
	parsed, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return parsed.Host
}

// Repository is the image without tag and digest.
func (r *ImageReference) Repository() string {
	name, _, _ := strings.Cut(r.Image, "@")
	if colon := strings.LastIndexByte(name, ':'); colon > strings.LastIndexByte(name, '/') {
		name = name[:colon]
	}
	return name
}
