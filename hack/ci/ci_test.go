// Package ci holds the example pipelines to what the Makefile has.
package ci

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	yamlnodes "go.yaml.in/yaml/v3"
)

// pipelines are the scripts of each pipeline, by its file: a text for each step.
func pipelines(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	err := fs.WalkDir(os.DirFS("."), ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(file) != ".yaml" {
			return err
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var pipeline yamlnodes.Node
		if err := yamlnodes.Unmarshal(text, &pipeline); err != nil {
			t.Errorf("%s: %v", file, err)
			return nil
		}
		found[file] = scripts(&pipeline)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// scripts are the values of GitHub's key run, and GitLab's script, below a node. The lines of one script are one text: they share a shell.
func scripts(node *yamlnodes.Node) []string {
	var found []string
	for i, child := range node.Content {
		isValue := node.Kind == yamlnodes.MappingNode && i%2 == 1
		switch {
		case isValue && node.Content[i-1].Value == "run":
			found = append(found, child.Value)
		case isValue && node.Content[i-1].Value == "script":
			var lines []string
			for _, line := range child.Content {
				lines = append(lines, line.Value)
			}
			found = append(found, strings.Join(lines, "\n"))
		default:
			found = append(found, scripts(child)...)
		}
	}
	return found
}

var (
	target   = regexp.MustCompile(`(?m)^([a-z-]+):.*## `)
	call     = regexp.MustCompile(`(?m)\bmake( -C \S+)?( .*)$`)
	variable = regexp.MustCompile(`^([A-Z]+)=`)
	setting  = regexp.MustCompile(`\b(?:TRELLIS|REGISTRY)(?:_[A-Z]+)?\b`)
)

// Each target and variable that a pipeline hands to make is the Makefile's, and each script is one that a shell can read. Red when a
// target is renamed, or a pipeline has one of its own.
func TestPipelinesUseTargetsThatExist(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	var targets []string
	for _, match := range target.FindAllSubmatch(makefile, -1) {
		targets = append(targets, string(match[1]))
	}
	found := pipelines(t)
	if len(found) != 4 {
		t.Errorf("there are %d pipelines", len(found))
	}
	for file, steps := range found {
		calls := 0
		for _, step := range steps {
			shell := exec.CommandContext(t.Context(), "bash", "-n", "-c", step)
			if output, err := shell.CombinedOutput(); err != nil {
				t.Errorf("%s: %v in\n%s\n%s", file, err, step, output)
			}
			for _, match := range call.FindAllStringSubmatch(step, -1) {
				calls++
				for word := range strings.FieldsSeq(match[2]) {
					name := variable.FindStringSubmatch(word)
					switch {
					case name != nil && !strings.Contains(string(makefile), "$("+name[1]+")"):
						t.Errorf("%s: the Makefile reads no %s", file, name[1])
					case name == nil && !slices.Contains(targets, word):
						t.Errorf("%s: the Makefile has no target %s", file, word)
					}
				}
			}
		}
		if calls == 0 {
			t.Errorf("%s calls make nowhere", file)
		}
	}
}

// Red when a pipeline releases what did not pass release-check.
func TestWhatIsReleasedIsCheckedBefore(t *testing.T) {
	checks := func(scripts ...string) bool {
		return slices.ContainsFunc(scripts, func(script string) bool { return strings.Contains(script, "make release-check ") })
	}
	var github struct {
		Jobs map[string]struct {
			Needs []string
			Steps []struct{ Run string }
		}
	}
	decode(t, "github/trellis.yaml", &github)
	var runs []string
	for _, step := range github.Jobs["release-check"].Steps {
		runs = append(runs, step.Run)
	}
	if !checks(runs...) || !slices.Contains(github.Jobs["release"].Needs, "release-check") {
		t.Errorf("on GitHub a release needs %v, and its check runs %q", github.Jobs["release"].Needs, runs)
	}
	type job struct {
		Stage  string
		Script []string
	}
	var gitlab struct {
		Stages  []string
		Check   job `yaml:"release-check"`
		Release job
	}
	decode(t, "gitlab/trellis.yaml", &gitlab)
	at := slices.Index(gitlab.Stages, gitlab.Check.Stage)
	if !checks(gitlab.Check.Script...) || at < 0 || at >= slices.Index(gitlab.Stages, gitlab.Release.Stage) {
		t.Errorf("on GitLab a release is in stage %q, and its check in %q runs %q", gitlab.Release.Stage, gitlab.Check.Stage, gitlab.Check.Script)
	}
}

func decode(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yamlnodes.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// The README names each pipeline, and each setting that a team has to bring. Red when one is left out.
func TestTheReadmeNamesWhatIsThere(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for file := range pipelines(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range append(setting.FindAllString(string(text), -1), file) {
			if !strings.Contains(string(readme), "`"+name+"`") {
				t.Errorf("the README does not name %s of %s", name, file)
			}
		}
	}
}
