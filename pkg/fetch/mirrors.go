package fetch

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// Mirror replaces a place by another one, for platforms without internet access.
type Mirror struct {
	// From is the prefix in catalogues, To replaces it: URLs of git remotes and Helm repositories,
	// or host[/path] of images and of charts behind oci://.
	From, To string
}

// Mirrors is a list of mirrors and a flag (--source-mirror). The longest prefix wins.
type Mirrors []Mirror

const registryScheme = "oci://"

func (m *Mirrors) String() string {
	if m == nil {
		return ""
	}
	texts := []string{}
	for _, mirror := range *m {
		texts = append(texts, mirror.From+"="+mirror.To)
	}
	return strings.Join(texts, ",")
}

// Set implements flag.Value: it adds from=to, several separated by commas.
func (m *Mirrors) Set(text string) error {
	for part := range strings.SplitSeq(text, ",") {
		from, to, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok || from == "" || to == "" {
			return fmt.Errorf("mirror %d is not from=to", len(*m)+1)
		}
		from, to = strings.TrimPrefix(from, registryScheme), strings.TrimPrefix(to, registryScheme)
		if isURL(from) != isURL(to) {
			return fmt.Errorf("mirror %d has a URL on one side only: write two URLs, or two prefixes without scheme", len(*m)+1)
		}
		for _, side := range []string{from, to} {
			if err := checkMirror(side); err != nil {
				return fmt.Errorf("mirror %d: %w", len(*m)+1, err)
			}
		}
		*m = append(*m, Mirror{From: from, To: to})
	}
	slices.SortStableFunc(*m, func(a, b Mirror) int { return cmp.Compare(len(b.From), len(a.From)) })
	return nil
}

// checkMirror does not repeat the text in errors: it may have a password.
func checkMirror(side string) error {
	if !isURL(side) {
		side = "https://" + side
	}
	parsed, err := url.Parse(side)
	switch {
	case err != nil || parsed.Host == "":
		return &RefusedError{Subject: "a side of it", Rule: "it is neither a URL nor host/path"}
	case parsed.User != nil && parsed.Scheme != "ssh", parsed.RawQuery != "", parsed.Fragment != "":
		return &RefusedError{Subject: "a side of it", Rule: "it has a user, a query or a fragment"}
	}
	return nil
}

func isURL(text string) bool { return strings.Contains(text, "://") }

// URL returns the place of a URL at a mirror, if there is one.
func (m Mirrors) URL(text string) (string, bool) {
	return m.place(text, func(Mirror) string { return "/" }, isURL)
}

// Image returns the place of an image, or a registry's path, at a mirror, if there is one.
func (m Mirrors) Image(text string) (string, bool) {
	return m.place(text, func(mirror Mirror) string {
		if strings.Contains(mirror.From, "/") {
			return "/:@"
		}
		return "/" // after a host alone, a colon begins a port
	}, func(side string) bool { return !isURL(side) })
}

// place finds the mirror. A place that is already at a mirror does not change.
func (m Mirrors) place(text string, ends func(Mirror) string, fits func(side string) bool) (string, bool) {
	for _, mirror := range m {
		if !fits(mirror.From) {
			continue
		}
		if _, there := below(text, mirror.To, ends(mirror)); there {
			return text, false
		}
	}
	for _, mirror := range m {
		if rest, ok := below(text, mirror.From, ends(mirror)); ok && fits(mirror.From) {
			return joined(mirror.To, rest), true
		}
	}
	return text, false
}

// below removes a prefix that ends at the end of a name. Hosts are compared without case.
func below(text, prefix, ends string) (rest string, ok bool) {
	if len(text) < len(prefix) || !strings.EqualFold(text[:len(prefix)], prefix) {
		return "", false
	}
	host := len(prefix)
	start := strings.Index(prefix, "://") + len("://")
	if !isURL(prefix) {
		start = 0
	}
	if slash := strings.IndexByte(prefix[start:], '/'); slash >= 0 {
		host = start + slash
	}
	if text[host:len(prefix)] != prefix[host:] {
		return "", false
	}
	rest = text[len(prefix):]
	return rest, rest == "" || strings.HasSuffix(prefix, "/") || strings.ContainsRune(ends, rune(rest[0]))
}

func joined(to, rest string) string {
	if strings.HasSuffix(to, "/") {
		return to + strings.TrimPrefix(rest, "/")
	}
	if rest != "" && !strings.ContainsRune("/:@", rune(rest[0])) {
		return to + "/" + rest
	}
	return to + rest
}

// Reference returns the reference at its mirror. Credentials without hosts are for the host in the
// catalogue: the mirror gets them only if their Secret names it.
func (m Mirrors) Reference(reference Reference) Reference {
	if reference.Location == nil {
		return reference
	}
	location, changed := reference.Location.Mirrored(m)
	if !changed {
		return reference
	}
	moved := reference
	moved.Location = location
	if len(moved.Credentials.Hosts) == 0 && moved.Credentials.IsSecret() {
		moved.Credentials.Hosts = []string{cmp.Or(reference.Location.Host(), "-")}
	}
	return moved
}
