package api

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/Masterminds/semver/v3"
	"k8s.io/client-go/rest"

	"github.com/trellis-addons/trellis/pkg/catalogue"
)

// matched finds the pattern of a rule that is nothing but a match.
var matched = regexp.MustCompile(`(?s)^self\.matches\(r'([^']*)'\)$`)

// inGoAs is a rule in Go; nil where this test does not know it. TestRefusedRangesHaveAMessage asks the API servers themselves.
func inGoAs(rule string) func(string) bool {
	if pattern := matched.FindStringSubmatch(rule); pattern != nil {
		return regexp.MustCompile(pattern[1]).MatchString
	}
	switch rule {
	case `self.matches(r'\d|x') || self in ['*', 'X']`:
		return func(self string) bool { return strings.ContainsAny(self, "0123456789x") || self == "*" || self == "X" }
	case `!self.matches(r'\W$') || self.endsWith('*') || self.endsWith(' ')`:
		sign := regexp.MustCompile(`\W$`)
		return func(self string) bool {
			return !sign.MatchString(self) || strings.HasSuffix(self, "*") || strings.HasSuffix(self, " ")
		}
	}
	return nil
}

// rangeRules are the rules of all fields that hold a range of versions, by place.
func rangeRules(t *testing.T) map[string][]func(string) bool {
	t.Helper()
	found := map[string][]func(string) bool{}
	for kind, crd := range crds(t) {
		for _, place := range nodes(crd) {
			for _, rule := range place.schema.XValidations {
				if !strings.Contains(rule.Message, "write it like") {
					continue
				}
				inGo := inGoAs(rule.Rule)
				if inGo == nil {
					t.Fatalf("rule %q is new: say in this test what it means", rule.Rule)
				}
				found[kind+" "+place.path] = append(found[kind+" "+place.path], inGo)
			}
			if len(place.schema.Pattern) > 200 && !strings.HasSuffix(place.path, "remote") {
				t.Errorf("%s %s: nobody reads a pattern of %d characters in a refusal: use a rule with a message",
					kind, place.path, len(place.schema.Pattern))
			}
		}
	}
	if len(found) != 8 {
		t.Fatalf("found %d fields with rules of a range, expected 8 (two constraints, two git refs, addonRef.version; of sets two constraints, addonRef.version)", len(found))
	}
	return found
}

// reference is one place of the rule that has the whole grammar.
const reference = "AddonInstallation spec.addonRef.version"

// isReference holds for all of its places.
func isReference(place string) bool { return strings.HasSuffix(place, "addonRef.version") }

func admits(rules []func(string) bool, text string) bool {
	for _, rule := range rules {
		if !rule(text) {
			return false
		}
	}
	return text != "" // by minLength
}

func TestRangeRulesAdmitWhatPeopleWrite(t *testing.T) {
	common := []string{
		">= 1.34, < 1.38", ">=1.34,<1.38", ">= 1.34 < 1.38", "~1.2", "~1.2.3", "~>1.2", "^1", "^0.2.3", "1.x", "1.X", "1.*",
		"1.2.x", "1.2 - 1.4", "1.2.3 - 1.4.5", ">=1 || <0.5", ">=1||<0.5", "*", "x", "X", ">= x", ">= 2.28.0-0", ">=2.28.0-rc.1", "1.36.3",
		"v1.36.3", ">= v2.28", "= 1.2.3", "!= 1.35.1", "=> 1.2", "=< 1.2", " 1.2 ", "1.2.3+build.5", "^1 || ^2 || ^3",
		"<1 || 1.2 - 1.4 || >3", ">= 1.34",
	}
	for place, rules := range rangeRules(t) {
		for _, text := range common {
			if !admits(rules, text) {
				t.Errorf("%s refuses the common range %q", place, text)
			}
			if _, err := catalogue.ParseRange(text); err != nil {
				t.Errorf("range %q is no range: %v", text, err)
			}
		}
	}
}

// TestWhatIsNoRangeIsRefusedInWords holds that no wrong range gets past rules and admission together, and that both tell how to
// write one.
func TestWhatIsNoRangeIsRefusedInWords(t *testing.T) {
	wrong := []string{
		"", " ", "latest and greatest", ">=", ">= one", ">= abc", ">= 1.37 <", "1.2.3.4", "== 1.2", ">> 1", ">= 1.2,", ", 1.2", "1.2 ||",
		"|| 1.2", "1 | 2", "1 & 2", "1 - 2 - 3", ">1 - 2", "1 -", "(1.2)", "≥ 1.2", "1.2 and 1.3", "1,,2", "^", "~", "1..2", "1.2-", "[1.2,1.3)",
	}
	exact := map[string]bool{"1.2.3.4": true, "1..2": true}
	byRules := 0
	for place, rules := range rangeRules(t) {
		for _, text := range wrong {
			_, err := catalogue.ParseRange(text)
			switch {
			case exact[text] && isReference(place): // an add-on may well call a version so
			case !admits(rules, text):
				byRules++
			case isReference(place):
				t.Errorf("%s admits %q", place, text)
			case err == nil:
				t.Errorf("rules and admission let %q through at %s", text, place)
			case !strings.Contains(err.Error(), `write it like ">= 1.34, < 1.38" or "1.x"`):
				t.Errorf("%q is refused by admission as %q", text, err)
			}
		}
	}
	if byRules < 5*len(wrong)/3 {
		t.Errorf("the API server itself refuses %d of %d only", byRules, 5*len(wrong))
	}
}

// suffixMistake finds an empty segment, a second build suffix and a numeric segment with a leading zero.
var suffixMistake = regexp.MustCompile(`[-+][0-9A-Za-z.+-]*\.\.|[-+]\.|\.\+|\+[0-9A-Za-z.-]*\+|-\+|[-.]0[0-9]`)

// exactVersion is what a reference takes beside ranges.
var exactVersion = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._+-]*[A-Za-z0-9])?$`)

// TestRangeRules makes texts from the pieces that ranges consist of, in all sorts of wrong orders too. Whatever the whole grammar
// admits of them must parse, and have the number of alternatives that it shows; mistakes inside a pre-release or build suffix are left
// to the controllers. The short rules admit all of it that names a number or an x.
func TestRangeRules(t *testing.T) {
	pieces := []string{
		">", "<", ">=", "<=", "=>", "=<", "=", "!=", "~", "~>", "^", "", "v", "1", "0", "12", "x", "X", "*", ".", ".2", ".x", ".*",
		"-rc.1", "-0", "-alpha", "+meta", " ", "  ", ",", ", ", " , ", "||", " || ", " ||", "|| ", " - ", "-",
	}
	random := rand.New(rand.NewPCG(1, 2))
	admitted := 0
	rules := rangeRules(t)
	short := rules["AddonCatalogue spec.addons[].versions[].constraints.k8sVersion"]
	for range 30_000 {
		var text strings.Builder
		for range 1 + random.IntN(9) {
			text.WriteString(pieces[random.IntN(len(pieces))])
		}
		written := text.String()
		if !admits(rules[reference], written) || exactVersion.MatchString(written) || suffixMistake.MatchString(written) {
			continue
		}
		admitted++
		constraint, err := semver.NewConstraint(written)
		if err != nil {
			t.Fatalf("the grammar admits %q, which does not parse: %v", written, err)
		}
		if got, want := strings.Count(constraint.String(), "||"), strings.Count(written, "||"); got != want {
			t.Fatalf("range %q is read as %q", written, constraint.String())
		}
		if strings.ContainsAny(written, "0123456789x") && !admits(short, written) {
			t.Fatalf("the short rules refuse %q, which is a range", written)
		}
	}
	if admitted < 300 {
		t.Fatalf("only %d texts were admitted: the test proves nothing", admitted)
	}
}

func TestExactVersionsAreAdmittedInAReference(t *testing.T) {
	rules := rangeRules(t)[reference]
	for _, text := range []string{"v1", "1.2.3", "stable", "2024-11-30", "v1.2.0-rc.1", "1.2.3+build", "latest_1"} {
		if !admits(rules, text) {
			t.Errorf("addonRef.version refuses the exact version %q", text)
		}
	}
}

// TestRefusedRangesHaveAMessage reads what each API server says: words on how to write a range, and no pattern.
func TestRefusedRangesHaveAMessage(t *testing.T) {
	everywhere(t, func(t *testing.T, config *rest.Config) {
		o := newObjects(t, config)
		for _, text := range []string{"*", "X", "1.x", " 1.2 ", ">= 1.34, < 1.38", "<1 || 1.2 - 1.4 || >3", ">= 2.28.0-0"} {
			object := edits{versionPath + "constraints": "{k8sVersion: '" + text + "'}"}.on(t, parse(t, bases["AddonCatalogue"]))
			if err := o.try(t.Context(), object); err != nil {
				t.Errorf("%q is refused: %v", text, err)
			}
		}
		for _, test := range []struct {
			base, at, text string
		}{
			{"AddonCatalogue", versionPath + "constraints", "{k8sVersion: '>= 1.37 <'}"}, {"AddonCatalogue", versionPath + "constraints", "{k8sVersion: '>= abc'}"},
			{"AddonInstallation", "spec.addonRef.version", "'>= abc'"}, {"AddonInstallation", "spec.addonRef.version", "'>= 1.37 <'"},
		} {
			err := o.try(t.Context(), edits{test.at: test.text}.on(t, parse(t, bases[test.base])))
			if err == nil || !strings.Contains(err.Error(), `">= 1.34, < 1.38" or "1.x"`) || strings.Contains(err.Error(), `\d`) || len(err.Error()) > 400 {
				t.Errorf("%s: got %v", test.text, err)
			}
		}
	})
}
