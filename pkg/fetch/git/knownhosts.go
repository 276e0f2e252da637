package git

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // the format of hashed host names in known_hosts
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// knownHostsLimit is the maximum number of lines; a Secret can't have many more.
const knownHostsLimit = 20_000

// hostKeys are a host's lines of known_hosts. OpenSSH's reader does not return the host's kinds of
// keys, without which a server may offer a kind that is not listed.
type hostKeys struct {
	host        string // as known_hosts has it: name, or [name]:port
	keys        []ssh.PublicKey
	authorities []ssh.PublicKey
	revoked     []ssh.PublicKey // for every host
}

// errMarker is for lines with an unknown marker: their key must not be accepted.
var errMarker = errors.New("its marker is none of @cert-authority and @revoked")

// readHostKeys reads the lines for a host and port. One unreadable line is an error for all.
func readHostKeys(content []byte, host, port string) (*hostKeys, error) {
	found := &hostKeys{host: knownhosts.Normalize(net.JoinHostPort(host, port))}
	count := 0
	for line := range bytes.Lines(content) {
		marker, patterns, key, _, _, err := ssh.ParseKnownHosts(withoutComment(line))
		if errors.Is(err, io.EOF) {
			continue
		}
		if count++; err == nil && count > knownHostsLimit {
			err = fmt.Errorf("it has more than %d lines", knownHostsLimit)
		}
		if err == nil {
			err = found.add(marker, patterns, key)
		}
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// withoutComment is a line up to its key: [marker] hosts type key. More words may follow (sshd(8)), but the parser
// allows only one.
func withoutComment(line []byte) []byte {
	line, _, _ = bytes.Cut(line, []byte{'\r'})
	fields, wanted := bytes.Fields(line), 3
	if len(fields) > 0 && fields[0][0] == '@' {
		wanted++
	}
	return bytes.Join(fields[:min(wanted, len(fields))], []byte{' '})
}

func (h *hostKeys) add(marker string, patterns []string, key ssh.PublicKey) error {
	switch {
	case marker == "revoked":
		h.revoked = append(h.revoked, key)
	case marker != "" && marker != "cert-authority":
		return errMarker
	case !h.matches(patterns):
	case marker == "cert-authority":
		h.authorities = append(h.authorities, key)
	default:
		h.keys = append(h.keys, key)
	}
	return nil
}

// matches needs a matching pattern, and no negated one.
func (h *hostKeys) matches(patterns []string) bool {
	matched := false
	for _, pattern := range patterns {
		pattern, negated := strings.CutPrefix(pattern, "!")
		if !matchesHost(strings.ToLower(pattern), pattern, strings.ToLower(h.host)) {
			continue
		}
		if negated {
			return false
		}
		matched = true
	}
	return matched
}

// matchesHost compares with a hashed name, |1|salt|hash, or with a pattern that may have * and ?.
func matchesHost(pattern, exact, host string) bool {
	fields := strings.Split(exact, "|")
	if len(fields) != 4 || fields[0] != "" || fields[1] != "1" {
		return matchesWildcards(pattern, host)
	}
	salt, saltErr := base64.StdEncoding.DecodeString(fields[2])
	sum, sumErr := base64.StdEncoding.DecodeString(fields[3])
	hasher := hmac.New(sha1.New, salt)
	hasher.Write([]byte(host))
	return saltErr == nil && sumErr == nil && hmac.Equal(hasher.Sum(nil), sum)
}

// matchesWildcards needs time up to the product of both lengths.
func matchesWildcards(pattern, text string) bool {
	star, mark, at, next := -1, 0, 0, 0
	for at < len(text) {
		switch {
		case next < len(pattern) && pattern[next] == '*':
			star, mark = next, at
			next++
		case next < len(pattern) && (pattern[next] == '?' || pattern[next] == text[at]):
			next++
			at++
		case star >= 0:
			mark++
			next, at = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[next:], "*") == ""
}

func (h *hostKeys) isEmpty() bool { return len(h.keys) == 0 && len(h.authorities) == 0 }

// algorithms are the algorithms to request: those of listed keys, and of certificates of an authority.
func (h *hostKeys) algorithms() []string {
	var wanted []string
	supported := ssh.SupportedAlgorithms().HostKeys
	for _, name := range supported {
		if len(h.authorities) > 0 && strings.Contains(name, "-cert-v01@") {
			wanted = append(wanted, name)
		}
		if slices.ContainsFunc(h.keys, func(key ssh.PublicKey) bool { return fitsKey(name, key.Type()) }) {
			wanted = append(wanted, name)
		}
	}
	return wanted
}

// fitsKey: keys of type ssh-rsa sign with the newer algorithms only.
func fitsKey(algorithm, keyType string) bool {
	if keyType == ssh.KeyAlgoRSA {
		return algorithm == ssh.KeyAlgoRSASHA256 || algorithm == ssh.KeyAlgoRSASHA512
	}
	return algorithm == keyType
}

type hostKeyError struct{ rule string }

func (e *hostKeyError) Error() string { return e.rule }

func (h *hostKeys) check(address string, remote net.Addr, key ssh.PublicKey) error {
	checker := ssh.CertChecker{
		IsHostAuthority: func(authority ssh.PublicKey, _ string) bool { return contains(h.authorities, authority) },
		IsRevoked: func(certificate *ssh.Certificate) bool {
			return contains(h.revoked, certificate.Key) || contains(h.revoked, certificate.SignatureKey)
		},
		HostKeyFallback: func(_ string, _ net.Addr, key ssh.PublicKey) error {
			if contains(h.revoked, key) {
				return &hostKeyError{"its host key is revoked in known_hosts"}
			}
			if !contains(h.keys, key) {
				return &hostKeyError{fmt.Sprintf("its host key %s is not the one in known_hosts", ssh.FingerprintSHA256(key))}
			}
			return nil
		},
	}
	err := checker.CheckHostKey(address, remote, key)
	if err == nil {
		return nil
	}
	if own, ok := errors.AsType[*hostKeyError](err); ok {
		return own
	}
	return &hostKeyError{"its host certificate does not match known_hosts: " + err.Error()}
}

func contains(keys []ssh.PublicKey, key ssh.PublicKey) bool {
	return slices.ContainsFunc(keys, func(known ssh.PublicKey) bool { return string(known.Marshal()) == string(key.Marshal()) })
}
