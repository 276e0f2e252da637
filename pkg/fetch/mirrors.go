package fetch

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// Mirror is a place that stands for another one, for platforms without a way out.
type Mirror struct {
	// From is what catalogues say, To where it is fetched from. Both are prefixes: URLs of git remotes, Helm repositories and
	// what their indexes name, or host[/path] of images and of charts behind oci://.
	From, To string
}

// Mirrors is a list of mirrors, and a flag (--source-mirror) that adds to it. The longest prefix that fits counts.
type Mirrors []Mirror

const registryScheme = "oci://"

// String is the list as the flag takes it.
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

// Set adds from=to, several of them with commas between.
func (m *Mirrors) Set(text string) error {
	for part := range strings.SplitSeq(text, ",") {
		from, to, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok || from == "" || to == "" {
			return fmt.Errorf("mirror %d is not from=to", len(*m)+1)
		}
		from, to = strings.TrimPrefix(from, registryScheme), strings.TrimPrefix(to, registryScheme)
		if isURL(from) != isURL(to) {
			return fmt.Errorf("mirror %d has a URL on one side only", len(*m)+1)
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

// checkMirror does not repeat what it refuses: it may hold a password.
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

// URL gives the place of a URL at a mirror, if there is one.
func (m Mirrors) URL(text string) (string, bool) {
	return m.place(text, func(Mirror) string { return "/" }, isURL)
}

// Image gives the place of an image, or of a registry's path, at a mirror, if there is one.
func (m Mirrors) Image(text string) (string, bool) {
	return m.place(text, func(mirror Mirror) string {
		if strings.Contains(mirror.From, "/") {
			return "/:@"
		}
		return "/" // behind a host alone, a colon begins a port
	}, func(side string) bool { return !isURL(side) })
}

// place finds the mirror. What is at a mirror already stays: it may lie below what it stands for.
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

// below takes a prefix off that ends where a name ends. Hosts are compared without case.
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

// Reference gives the reference that is fetched instead of one. Credentials without a list of hosts are for the host that
// the catalogue names, and a mirror is another: it gets them only if their Secret names it.
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
