package api

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/Masterminds/semver/v3"
)

// rangePatterns are the patterns of all fields that hold a range of versions, by place.
func rangePatterns(t *testing.T) map[string]*regexp.Regexp {
	t.Helper()
	found := map[string]*regexp.Regexp{}
	for kind, crd := range crds(t) {
		for _, place := range nodes(crd) {
			if strings.Contains(place.schema.Pattern, `\|\|`) {
				found[kind+" "+place.path] = regexp.MustCompile(place.schema.Pattern)
			}
		}
	}
	if len(found) != 5 {
		t.Fatalf("found %d fields with a range's pattern, expected 5 (two constraints, two git refs, addonRef.version)", len(found))
	}
	return found
}

func TestRangePatternAdmitsWhatPeopleWrite(t *testing.T) {
	common := []string{
		">= 1.34, < 1.38", ">=1.34,<1.38", ">= 1.34 < 1.38", "~1.2", "~1.2.3", "~>1.2", "^1", "^0.2.3", "1.x", "1.X", "1.*",
		"1.2.x", "1.2 - 1.4", "1.2.3 - 1.4.5", ">=1 || <0.5", ">=1||<0.5", "*", "x", ">= 2.28.0-0", ">=2.28.0-rc.1", "1.36.3", "v1.36.3",
		">= v2.28", "= 1.2.3", "!= 1.35.1", "=> 1.2", "=< 1.2", " 1.2 ", "1.2.3+build.5", "^1 || ^2 || ^3", "<1 || 1.2 - 1.4 || >3", ">= 1.34",
	}
	for place, pattern := range rangePatterns(t) {
		for _, text := range common {
			if !pattern.MatchString(text) {
				t.Errorf("%s refuses the common range %q", place, text)
			}
			if _, err := semver.NewConstraint(text); err != nil {
				t.Errorf("range %q is no range: %v", text, err)
			}
		}
	}
}

func TestRangePatternRefusesWhatIsNoRange(t *testing.T) {
	wrong := []string{
		"", " ", "latest and greatest", ">=", ">= one", "1.2.3.4", "== 1.2", ">> 1", ">= 1.2,", ", 1.2", "1.2 ||", "|| 1.2", "1 | 2",
		"1 & 2", "1 - 2 - 3", ">1 - 2", "1 -", "(1.2)", "≥ 1.2", "1.2 and 1.3", "1,,2", "^", "~", "1..2", "1.2-", "[1.2,1.3)",
	}
	exact := map[string]bool{"1.2.3.4": true, "1..2": true}
	for place, pattern := range rangePatterns(t) {
		for _, text := range wrong {
			if exact[text] && strings.HasSuffix(place, "addonRef.version") {
				continue // an add-on may well call a version so
			}
			if pattern.MatchString(text) {
				t.Errorf("%s admits %q", place, text)
			}
		}
	}
}

// suffixMistake finds an empty segment, a second build suffix and a numeric segment with a leading zero.
var suffixMistake = regexp.MustCompile(`[-+][0-9A-Za-z.+-]*\.\.|[-+]\.|\.\+|\+[0-9A-Za-z.-]*\+|-\+|[-.]0[0-9]`)

// TestRangePatternAdmitsOnlyWhatParses makes texts from the pieces that ranges consist of, in all sorts of wrong orders
// too: whatever the pattern admits of them must parse, and have the number of alternatives that it shows. Mistakes inside
// a pre-release or build suffix are left to the controllers (ConstraintInvalid): to refuse them too would double the
// pattern, which people read in the API server's answer.
func TestRangePatternAdmitsOnlyWhatParses(t *testing.T) {
	pieces := []string{
		">", "<", ">=", "<=", "=>", "=<", "=", "!=", "~", "~>", "^", "", "v", "1", "0", "12", "x", "X", "*", ".", ".2", ".x", ".*",
		"-rc.1", "-0", "-alpha", "+meta", " ", "  ", ",", ", ", " , ", "||", " || ", " ||", "|| ", " - ", "-",
	}
	random := rand.New(rand.NewPCG(1, 2))
	admitted := 0
	pattern := rangePatterns(t)["AddonCatalogue spec.addons[].versions[].constraints.k8sVersion"]
	for range 30_000 {
		var text strings.Builder
		for range 1 + random.IntN(9) {
			text.WriteString(pieces[random.IntN(len(pieces))])
		}
		if !pattern.MatchString(text.String()) || suffixMistake.MatchString(text.String()) {
			continue
		}
		admitted++
		constraint, err := semver.NewConstraint(text.String())
		if err != nil {
			t.Fatalf("the pattern admits %q, which does not parse: %v", text.String(), err)
		}
		if got, want := strings.Count(constraint.String(), "||"), strings.Count(text.String(), "||"); got != want {
			t.Fatalf("range %q is read as %q", text.String(), constraint.String())
		}
	}
	if admitted < 300 {
		t.Fatalf("only %d texts were admitted: the test proves nothing", admitted)
	}
}

func TestExactVersionsAreAdmittedInAReference(t *testing.T) {
	pattern := rangePatterns(t)["AddonInstallation spec.addonRef.version"]
	for _, text := range []string{"v1", "1.2.3", "stable", "2024-11-30", "v1.2.0-rc.1", "1.2.3+build", "latest_1"} {
		if !pattern.MatchString(text) {
			t.Errorf("addonRef.version refuses the exact version %q", text)
		}
	}
}
