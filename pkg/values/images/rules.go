package images

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Rule replaces From by To at the start of references.
type Rule struct {
	// From is a registry, with or without the first parts of a path: docker.io, quay.io/prometheus.
	From string
	To   string
}

// Rules are a seed's rules for images.
type Rules struct {
	// Mirrors are sorted: of two that match, the longer is first.
	Mirrors []Rule
	// PullSecret is named by every pod with a rewritten image; empty: by none.
	PullSecret string
}

// RuleError reports that a mirror does not have the form from=to.
type RuleError struct{ Rule, Problem string }

func (e *RuleError) Error() string {
	return fmt.Sprintf("image mirror %q %s: write it as registry[/path]=registry[/path]", e.Rule, e.Problem)
}

// prefix of references: a registry, with or without parts of a path.
var prefix = regexp.MustCompile(`^[a-zA-Z0-9.-]+(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*$`)

// ParseMirrors reads rules. The error is a *RuleError.
func ParseMirrors(texts []string) ([]Rule, error) {
	var rules []Rule
	for _, text := range texts {
		from, to, found := strings.Cut(text, "=")
		rule := Rule{From: strings.TrimSuffix(from, "/"), To: strings.TrimSuffix(to, "/")}
		switch {
		case !found:
			return nil, &RuleError{text, "has no ="}
		case !prefix.MatchString(rule.From) || !prefix.MatchString(rule.To):
			return nil, &RuleError{text, "has parts other than a registry and a path"}
		}
		if domain, path, _ := strings.Cut(rule.From, "/"); domain == legacyDomain {
			rule.From = strings.TrimSuffix(defaultDomain+"/"+path, "/")
		}
		if slices.ContainsFunc(rules, func(other Rule) bool { return other.From == rule.From }) {
			return nil, &RuleError{text, "has the same source as another one"}
		}
		rules = append(rules, rule)
	}
	slices.SortFunc(rules, byLength)
	return rules, nil
}

func byLength(a, b Rule) int {
	return cmp.Or(cmp.Compare(len(b.From), len(a.From)), cmp.Compare(a.From, b.From))
}

// With returns these rules with more mirrors, by registry. They override mirrors of equal registries. The error is a *RuleError.
func (r Rules) With(mirrors map[string]string) (Rules, error) {
	texts := make([]string, 0, len(mirrors))
	for from, to := range mirrors {
		texts = append(texts, from+"="+to)
	}
	more, err := ParseMirrors(texts)
	if err != nil {
		return Rules{}, err
	}
	all := slices.Clone(more)
	for _, rule := range r.Mirrors {
		if !slices.ContainsFunc(more, func(other Rule) bool { return other.From == rule.From }) {
			all = append(all, rule)
		}
	}
	slices.SortFunc(all, byLength)
	return Rules{Mirrors: all, PullSecret: r.PullSecret}, nil
}

// Image returns a reference with its mirror, and whether that changed it. Other texts do not change.
func (r Rules) Image(text string) (string, bool) {
	reference, ok := Parse(text)
	if !ok {
		return text, false
	}
	name := reference.Name()
	for _, rule := range r.Mirrors {
		if _, mirrored := below(name, rule.To); mirrored {
			return text, false
		}
	}
	for _, rule := range r.Mirrors {
		if rest, matches := below(name, rule.From); matches {
			return rule.To + rest + reference.Tag + reference.Digest, true
		}
	}
	return text, false
}

// below cuts a prefix off a name, at a slash only.
func below(name, prefix string) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(name, prefix)
	return rest, ok && (rest == "" || rest[0] == '/')
}

// Registries maps replaced registries to their mirrors, for templates.
func (r Rules) Registries() map[string]string {
	mirrors := make(map[string]string, len(r.Mirrors))
	for _, rule := range r.Mirrors {
		mirrors[rule.From] = rule.To
	}
	return mirrors
}

// Empty reports that no image changes.
func (r Rules) Empty() bool { return len(r.Mirrors) == 0 }

// Canonical is equal for equal rules; it is part of the inputs hash.
func (r Rules) Canonical() []byte {
	var text []byte
	for _, rule := range r.Mirrors {
		text = fmt.Appendf(text, "%q=%q\n", rule.From, rule.To)
	}
	return fmt.Appendf(text, "%q", r.PullSecret)
}
