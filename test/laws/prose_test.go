package laws

import (
	"fmt"
	"iter"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// oddWord is a word, or words in a row, that a reader has to read twice, and the plain ones for it.
type oddWord struct {
	pattern *regexp.Regexp
	better  string
}

// odd makes an oddWord. A space in the words is any white space, so that a phrase is found over the end of a line too.
func odd(words, better string) oddWord {
	return oddWord{regexp.MustCompile(`(?i)\b(?:` + strings.ReplaceAll(words, " ", `\s+`) + `)\b`), better}
}

// oddWords is the only list of them.
var oddWords = []oddWord{
	odd(`stands?|stood|standing`, `"is", "is applied", "is valid", "is in" or "represents"`),
	odd(`anew`, `"again", "recreated" or "a new …"`),
	odd(`(?:made|make|makes|making) (?:it |them )?again`, `"recreated", "recreates" or "creates … again"`),
	odd(`who(?:so|m)?ever`, `the person or program, such as "the user who"`),
	odd(`(?:some|no|every)(?:body|one)(?:'s)?`, `the person or object, such as "a user", "no cluster" or "all users"`),
	odd(`anybody(?:'s)?`, `the person, such as "any user"`),
	odd(`whatever|wherever`, `"regardless of", "any", "all", "if" or "everywhere that"`),
	odd(`(?:go|goes|going|gone) by`, `"uses", "follows" or "is based on"`),
	odd(`told`, `"reported", "shown" or "listed"`),
	odd(`tells? (?:of|apart)`, `"report", "show" or "distinguish"`),
	odd(`(?:is|are|was|were|be) said|said (?:of|above)`, `"is described" or "see", with the place`),
	odd(`(?:a|its|their) word`, `"an approval", or "message" where it is text`),
	odd(`in (?:plain )?words`, `"with a message"`),
	odd(`rooms?`, `"package", or "space" and "limit"`),
	odd(`laws?`, `"architecture rule"`),
	odd(`(?:a|the|one|each|every|no|next|first|last|second|its|another|quick|slow) pass|passes (?:of|over)|of passes`, `"reconciliation"`),
	odd(`parting`, `"deletion"`),
	odd(`vacate[sd]?`, `"deregister"`),
	odd(`doubt|unsure`, `"unknown" or "cannot be determined"`),
	odd(`former(?:ly)?`, `"previous" or "earlier"`),
	odd(`besides`, `"also" or "in addition"`),
	odd(`mend(?:s|ed|ing)?`, `"fix" or "correct"`),
	odd(`wish(?:es|ed)?`, `"request", or the AddonInstallation`),
	odd(`judg(?:e|es|ed|ing)`, `"evaluate" or "assess"`),
	odd(`(?:let|lets|letting) (?:it |them )?go`, `"release" or "no longer manages"`),
	odd(`for ever`, `"forever", or the time`),
	odd(`at last`, `"at most" or "after at most"`),
	odd(`sight`, `"observation"`),
	odd(`withh(?:old|olds|eld)`, `"revoke" or "does not give"`),
	odd(`ere|lest|save for|but for`, `"before", "so that … not" or "except for"`),
	odd(`is known by`, `"is identified by"`),
	odd(`(?:hand|hands|handed) (?:it |them )?on`, `"copy" or "pass to"`),
	odd(`believ(?:e|es|ed)`, `"accept" or "trust"`),
	odd(`nevertheless`, `"still"`),
	odd(`out of (?:that|this)`, `"from it"`),
	odd(`wants?|wanted`, `"needs", "requires" or "desired"`),
}

// prose are the pages whose words are counted. Decisions keep the words of their date.
var prose = []string{
	"*.md", "docs/*.md", "docs/guides/*.md", "docs/spec/*.md", "docs/reference/*.md", "charts/*/README.md", "charts/*/values.yaml",
	"deploy/*/README.md", "hack/ci/README.md",
}

// noProse is what a page has beside prose: blocks of code with a language, code in lines, targets of links, and "stand-in".
var noProse = regexp.MustCompile("(?ms)^[ \t]*```\\S+[^\n]*\n.*?^[ \t]*```[ \t]*$|``[^\n]*?``|`[^`\n]*\n?[^`\n]*`|" +
	`\]\([^)\s]*\)|https?://[^\s)]+|\b[Ss]tand-ins?\b`)

// comment is the end of a line of YAML that is prose.
var comment = regexp.MustCompile(`(?m)^\s*#.*$|\s#\s.*$`)

// proseOf is a page with spaces in place of all that is no prose, so that places stay.
func proseOf(file, text string) string {
	if path.Ext(file) == ".yaml" {
		var kept strings.Builder
		end := 0
		for _, at := range comment.FindAllStringIndex(text, -1) {
			kept.WriteString(blank(text[end:at[0]]) + text[at[0]:at[1]])
			end = at[1]
		}
		text = kept.String()
	}
	return noProse.ReplaceAllStringFunc(text, blank)
}

// blank is as many spaces and ends of lines as a text has.
func blank(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' {
			return r
		}
		return ' '
	}, text)
}

// opaque complains about the odd words of a page.
func opaque(file, text string) []string {
	var complaints []string
	for line, advice := range oddLines(proseOf(file, text)) {
		complaints = append(complaints, fmt.Sprintf("%s:%d: %s%s", file, line, advice, origin(file)))
	}
	return complaints
}

// oddLines yields the line of each odd word of a text, with advice.
func oddLines(text string) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		for _, word := range oddWords {
			for _, at := range word.pattern.FindAllStringIndex(text, -1) {
				found := strings.Join(strings.Fields(text[at[0]:at[1]]), " ")
				if !yield(1+strings.Count(text[:at[0]], "\n"), fmt.Sprintf("%q: write %s", found, word.better)) {
					return
				}
			}
		}
	}
}

// origin is where the text of a generated page is changed.
func origin(file string) string {
	switch {
	case path.Dir(file) == "docs/reference":
		return " in the comments of the code or in hack/reference/about, then run make generate"
	case path.Base(path.Dir(file)) == "crds":
		return " in the comments of apis, then run make generate"
	case path.Base(file) == "dashboard.json":
		return " in hack/dashboards, then run make generate"
	case strings.HasPrefix(file, "charts/") && path.Base(file) == "README.md":
		return " in values.yaml, then run make generate"
	}
	return ""
}

func TestPagesUsePlainWords(t *testing.T) {
	root := checkout(t)
	for _, pattern := range prose {
		for name, text := range pages(t, root, pattern) {
			for _, complaint := range opaque(name, text) {
				t.Error(complaint)
			}
		}
	}
}

// pages reads the files of a pattern, by their slash-separated paths below the checkout; there must be one.
func pages(t *testing.T, root, pattern string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
	if err != nil || len(files) == 0 {
		t.Errorf("no file is %s: %v", pattern, err)
	}
	found := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name, err := filepath.Rel(root, file)
		if err != nil {
			t.Fatal(err)
		}
		found[filepath.ToSlash(name)] = string(text)
	}
	return found
}

func TestOddWordsAreFound(t *testing.T) {
	for _, one := range []struct{ why, file, text, says string }{
		{"a word", "a.md", "# A\n\nThe rule\nstands.\n", `a.md:4: "stands": write "is"`},
		{"words over the end of a line", "a.md", "What is gone\nby.\n", `a.md:1: "gone by"`},
		{"a capital letter", "a.md", "Nobody waits.\n", `a.md:1: "Nobody"`},
		{"a possessive", "a.md", "It is somebody's.\n", `a.md:1: "somebody's"`},
		{"the text of a link", "a.md", "[The room](b.md)\n", `a.md:1: "room"`},
		{"a block without a language", "a.md", "```\npkg/a  a room\n```\n", `a.md:2: "room"`},
		{"what follows code", "a.md", "`room`, and a room\n", `a.md:1: "room"`},
		{"a comment", "values.yaml", "a: b # whoever it is\n", `values.yaml:1: "whoever"`},
		{"a generated page", "docs/reference/flags.md", "anew\n", "make generate"},
		{"code", "a.md", "`-former` and `a\nroom`\n", ""},
		{"a block with a language", "a.md", "```sh\nroom\n```\n\n  ```sh\n  room\n  ```\n", ""},
		{"the target of a link", "a.md", "[it](docs/0002-contracts-between-rooms.md#room) https://example.com/room\n", ""},
		{"parts of words", "a.md", "standalone, a stand-in, withstand, mushrooms, lawful, a test passes\n", ""},
		{"values", "values.yaml", "room: anew\n# fine\n", ""},
	} {
		got := opaque(one.file, one.text)
		if one.says == "" && len(got) > 0 {
			t.Errorf("%s: complains about right text: %q", one.why, got)
		}
		if one.says != "" && !slices.ContainsFunc(got, func(complaint string) bool { return strings.Contains(complaint, one.says) }) {
			t.Errorf("%s: got %q, expected a complaint with %q", one.why, got, one.says)
		}
	}
}
