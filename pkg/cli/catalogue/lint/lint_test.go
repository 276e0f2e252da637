package lint_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/trellis-addons/trellis/hack/docs/markdown"
	"github.com/trellis-addons/trellis/pkg/cli"
	"github.com/trellis-addons/trellis/pkg/cli/catalogue/lint"
	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/golden"
)

// run lints on a terminal of 40 columns, with an input.
func run(t *testing.T, input string, arguments ...string) (out, errors string, code int) {
	t.Helper()
	var written, told bytes.Buffer
	tool := cli.NewTool(genericiooptions.IOStreams{In: strings.NewReader(input), Out: &written, ErrOut: &told})
	tool.Width = 40
	code = cli.Run(t.Context(), tool, append([]string{"lint"}, arguments...), lint.Command)
	return written.String(), told.String(), code
}

// Red when a finding is missing, or has another file, line or text.
func TestFindingsHaveFileLineAndWhatToDo(t *testing.T) {
	for file, arguments := range map[string][]string{
		"table.txt": {"testdata/bad"}, "json.txt": {"testdata/bad", "-o", "json"}, "github.txt": {"testdata/bad", "-o", "github"},
		"core.txt": {"testdata/bad/web/web.yaml", "--type", "Core"},
	} {
		out, errors, code := run(t, "", arguments...)
		if code != cli.ExitNo {
			t.Errorf("%q: exit code %d", arguments, code)
		}
		golden.Match(t, "testdata/"+file, out+errors)
	}
	out, errors, code := run(t, "", "testdata/good", "testdata/good/web.yaml")
	if code != cli.ExitDone {
		t.Errorf("what is right: exit code %d", code)
	}
	golden.Match(t, "testdata/warnings.txt", out+errors)
}

// Red when a sample of the repository, or an example of its pages, has an error.
func TestTheRepositoryIsRight(t *testing.T) {
	root, err := binaries.Root()
	expect.NoError(t, err)
	samples, err := filepath.Glob(filepath.Join(root, "deploy", "sandbox", "*catalogue.yaml"))
	expect.NoError(t, err)
	more, err := filepath.Glob(filepath.Join(root, "test", "api", "testdata", "catalogue-*.yaml"))
	expect.NoError(t, err)
	samples = append(append(samples, more...), filepath.Join(root, "deploy/sandbox/git-catalogue"), filepath.Join(root, "deploy/sandbox/cluster-api/catalogue.yaml"),
		filepath.Join(root, "test/charts/testdata/golden/kkp-catalogues.yaml"))
	if len(samples) < 9 {
		t.Fatalf("only %d samples", len(samples))
	}
	for _, sample := range samples {
		if out, errors, code := run(t, "", sample); code != cli.ExitDone {
			t.Errorf("%s: %s%s", sample, out, errors)
		}
	}
	examples := 0
	for _, name := range []string{"docs/spec/addoncatalogue.md", "docs/spec/kkp.md"} {
		text, err := os.ReadFile(filepath.Join(root, name))
		expect.NoError(t, err)
		for _, block := range markdown.Read(text).Blocks {
			if block.Info != "yaml" || !strings.Contains(block.Text, "kind: AddonCatalogue\n") && !strings.Contains(block.Text, "\n- name: ") {
				continue
			}
			examples++
			if out, errors, code := run(t, block.Text, "-"); code != cli.ExitDone {
				t.Errorf("%s line %d: %s%s", name, block.Line, out, errors)
			}
		}
	}
	if examples < 2 {
		t.Errorf("only %d examples", examples)
	}
}

// Red when a wrong call is not refused in one line.
func TestWhatCanNotBeReadIsOneLine(t *testing.T) {
	empty, large := t.TempDir(), filepath.Join(t.TempDir(), "large.yaml")
	expect.NoError(t, os.WriteFile(filepath.Join(empty, "README.md"), []byte("no catalogue"), 0o600))
	expect.NoError(t, os.WriteFile(large, bytes.Repeat([]byte("#"), 10<<20), 0o600))
	for _, test := range []struct {
		why, input string
		arguments  []string
		code       int
		says       string
	}{
		{"no argument", "", nil, cli.ExitUsage, "arg"},
		{"a file that is missing", "", []string{"x.yaml"}, cli.ExitUsage, `"x.yaml" can't be read`},
		{"a folder without catalogues", "", []string{empty}, cli.ExitUsage, "no AddonCatalogue and no list"},
		{"an empty input", "", []string{"-"}, cli.ExitUsage, "no AddonCatalogue and no list"},
		{"an unknown type", "", []string{"testdata/good", "--type", "core"}, cli.ExitUsage, "use Custom or Core"},
		{"an unknown format", "", []string{"testdata/good", "-o", "wide"}, cli.ExitUsage, "table, json, github"},
		{"a hostile name of a file", "", []string{"x\x1b[2J\n\u202e"}, cli.ExitUsage, "can't be read"},
	} {
		out, errors, code := run(t, test.input, test.arguments...)
		if code != test.code || out != "" || strings.Count(errors, "\n") != 1 || !strings.Contains(errors, test.says) {
			t.Errorf("%s: exit code %d, output %q, errors %q", test.why, code, out, errors)
		}
		if strings.ContainsAny(errors, "\x1b\u202e") {
			t.Errorf("%s: a control character is printed: %q", test.why, errors)
		}
	}
	for _, test := range []struct{ why, input, at, says string }{
		{"a file that is too large", "", large, "10485760 bytes, more than 1048576: split it"},
		{"an input that is too large", strings.Repeat("#", 10<<20), "-", "more than 1048576: split it"},
		{"no YAML", "- name: web\n  versions: [\n", "-", "stdin:2"},
		{"another kind", "apiVersion: v1\nkind: Secret\n", "-", "stdin:1"},
	} {
		out, _, code := run(t, test.input, test.at)
		if code != cli.ExitNo || strings.Count(out, "\n") != 2 || !strings.Contains(out, test.says) {
			t.Errorf("%s: exit code %d, output %q", test.why, code, out)
		}
	}
}

// Red when a name of others controls the terminal, ends an annotation, or begins one.
func TestNamesOfOthersAreCleaned(t *testing.T) {
	hostile := filepath.Join(t.TempDir(), "a,line=1::b%0A.yaml")
	content := "# The name is in line 2.\n- name: \"we\\e[2Jb\\n::error::c%0A\"\n  versions:\n  - version: \"1\\u202e\"\n  - version: \"2\\x9b\"\n"
	expect.NoError(t, os.WriteFile(hostile, []byte(content), 0o600))
	for _, format := range []string{"table", "json", "github"} {
		out, errors, _ := run(t, "", hostile, "-o", format)
		if strings.ContainsAny(out+errors, "\x1b\u202e\u009b") {
			t.Errorf("%s: a control character is printed: %q", format, out+errors)
		}
		lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
		if format == "github" {
			for _, line := range lines {
				if !strings.HasPrefix(line, "::error file=") || strings.Contains(line, ",line=1:") || !strings.Contains(line, "%2Cline=1%3A%3Ab%250A") ||
					!strings.Contains(line, "c%250A") {
					t.Errorf("annotation %q", line)
				}
			}
		}
		if format == "json" && !json.Valid([]byte(out)) {
			t.Errorf("JSON %q", out)
		}
	}
}
