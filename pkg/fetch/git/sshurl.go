package git

import (
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
)

type sshRemote struct {
	// url is ssh://host:port/path, without user.
	url  *url.URL
	user string
	// path is absolute, or in the form user@host:path relative to the user's home.
	path string
}

var (
	sshUser = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,63}$`)
	sshHost = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?|[0-9A-Fa-f:.]+)$`)
	// sshPath has only characters that a shell does not interpret: the server's shell may see it.
	sshPath = regexp.MustCompile(`^[A-Za-z0-9._~+@,=/-]+$`)
	scpForm = regexp.MustCompile(`^([^/:@]+)@([^/:@]+):([^:]*)$`)
)

// isSSH reports whether a remote uses ssh; it may still be invalid.
func isSSH(text string) bool {
	return strings.HasPrefix(text, "ssh://") || !strings.Contains(text, "://") && scpForm.MatchString(text)
}

// parseSSH reads ssh://[user@]host[:port]/path and user@host:path, both without a password.
func parseSSH(text string) (*sshRemote, error) {
	remote, rule := readSSH(text)
	if rule != "" {
		return nil, &fetch.RefusedError{Subject: "the git remote", Rule: rule}
	}
	return remote, nil
}

func readSSH(text string) (*sshRemote, string) {
	remote := &sshRemote{}
	if parts := scpForm.FindStringSubmatch(text); parts != nil && !strings.HasPrefix(text, "ssh://") {
		remote.user, remote.path = parts[1], parts[3]
		remote.url = &url.URL{Scheme: "ssh", Host: parts[2], Path: "/" + strings.TrimPrefix(parts[3], "/")}
		return remote, remote.rule(true)
	}
	parsed, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, "it can't be parsed"
	case parsed.RawQuery != "" || parsed.ForceQuery || parsed.Fragment != "":
		return nil, "the URL has a query or a fragment"
	}
	if _, has := parsed.User.Password(); has {
		return nil, "the URL holds a password; put a key into the Secret of secretRef"
	}
	remote.user, remote.path = parsed.User.Username(), parsed.Path
	remote.url = &url.URL{Scheme: "ssh", Host: parsed.Host, Path: parsed.Path}
	return remote, remote.rule(parsed.User != nil)
}

func (r *sshRemote) rule(namesUser bool) string {
	if _, err := strconv.ParseUint(r.url.Port(), 10, 16); err != nil && r.url.Port() != "" {
		return "the port is not a number"
	}
	switch {
	case namesUser && !sshUser.MatchString(r.user):
		return "its user is not a name"
	case !sshHost.MatchString(r.url.Hostname()):
		return "its host is not a name or address"
	case len(r.path) > 1024 || !sshPath.MatchString(r.path) || strings.Trim(r.path, "/") == "":
		return "its path is empty, or has characters other than letters, digits and ._~+@,=/-"
	}
	for component := range strings.SplitSeq(r.path, "/") {
		if component == ".." || strings.HasPrefix(component, "-") {
			return "its path has component .., or one that begins with a dash"
		}
	}
	return ""
}

func (r *sshRemote) shown() string { return outbound.Shown(r.url) }
