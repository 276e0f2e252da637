// Package lint is the verb that checks files of catalogues as admission does, without a cluster.
package lint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/cli"
	"github.com/trellis-addons/trellis/pkg/serve/documents"
	"github.com/trellis-addons/trellis/pkg/serve/view"
)

// Example has calls for the help.
const Example = `  # The folder of a catalogue in git
  kubectl addons catalogue lint ./catalogue

  # As annotations of a pull request on GitHub
  kubectl addons catalogue lint ./catalogue -o github

  # Files of a Core catalogue, and standard input
  kubectl addons catalogue lint --type Core cni.yaml csi.yaml
  cat catalogue.yaml | kubectl addons catalogue lint -`

const formatGitHub = "github"

var types = []string{string(v1.CatalogueCustom), string(v1.CatalogueCore)}

type options struct {
	*cli.Tool
	format cli.Format
	kind   string
}

// Command makes the command.
func Command(tool *cli.Tool) *cobra.Command {
	o := &options{Tool: tool}
	command := &cobra.Command{
		Use:   "lint FILE|FOLDER|- ...",
		Short: "Check files of catalogues without a cluster",
		Long: "Check files of catalogues as admission and the merge do, without a cluster: fields, versions, ranges, forms, values and their\n" +
			"templates, health rules, rights of agents. Each finding has the file, the line and what to do. Exit code 1: there are errors.\n\n" +
			"A folder is read as a catalogue in git: all its files that end in .yaml, together. Each argument is checked by itself.",
		Example: Example, Args: cobra.MinimumNArgs(1), Annotations: cli.Needs(),
		RunE: func(command *cobra.Command, paths []string) error { return o.run(command.Context(), paths) },
	}
	o.format.Flag(command, formatGitHub)
	command.Flags().StringVar(&o.kind, "type", "",
		"type of the catalogue: Custom or Core (default: spec.type of an AddonCatalogue, else Custom)")
	_ = command.RegisterFlagCompletionFunc("type", cobra.FixedCompletions(types, cobra.ShellCompDirectiveNoFileComp))
	return command
}

func (o *options) run(ctx context.Context, paths []string) error {
	if err := o.format.Check(); err != nil {
		return err
	}
	if o.kind != "" && !slices.Contains(types, o.kind) {
		return cli.Fail(cli.ExitUsage, "use Custom or Core", "unknown type %q of catalogues", o.kind)
	}
	found := findings{}
	for _, one := range paths {
		if err := o.lint(ctx, one, &found); err != nil {
			return err
		}
	}
	slices.SortStableFunc(found, func(a, b finding) int { return cmp.Or(cmp.Compare(a.File, b.File), a.Line-b.Line) })
	if err := o.print(found); err != nil {
		return err
	}
	counted := text.Count(found.count(severityError), "error") + " and " + text.Count(found.count(severityWarning), "warning")
	if found.count(severityError) > 0 {
		return cli.Fail(cli.ExitNo, "", "%s", counted)
	}
	if o.format.Is("table") {
		o.Note("%s", counted)
	}
	return nil
}

// lint checks one argument.
func (o *options) lint(ctx context.Context, at string, found *findings) error {
	content, err := o.Content(ctx, at)
	if err == nil {
		err = content.Check(ctx, v1.CatalogueType(o.kind))
	}
	if wrong, ok := errors.AsType[*documents.InvalidError](err); ok {
		for _, problem := range wrong.Problems {
			found.add(at, problem.Place, severityError, problem.Message)
		}
	} else if err != nil {
		return err
	}
	if content == nil { // the files can't be read
		return nil
	}
	for _, object := range content.Objects {
		if by := object.Spec.SupportedBy; by != "" {
			if err := catalogue.CheckSupportedBy(by); err != nil {
				found.add(at, object.Place, severityError, fmt.Sprintf("spec.supportedBy: %v", err))
			}
		}
		if git := object.Spec.Git; git != nil {
			if err := catalogue.CheckGitRef(git.Ref); err != nil {
				found.add(at, object.Place, severityError, fmt.Sprintf("spec.git.ref.semver: %v", err))
			}
		}
	}
	addSlips(at, content, found)
	return nil
}

// addSlips adds the warnings of admission, each once for an add-on.
func addSlips(at string, content *documents.Content, found *findings) {
	told := map[string]bool{}
	for i := range content.Addons {
		addon := &content.Addons[i]
		for j := range addon.Versions {
			version := &addon.Versions[j]
			for _, slip := range catalogue.Slips(version) {
				if told[string(addon.Name)+slip] {
					continue
				}
				told[string(addon.Name)+slip] = true
				found.add(at, content.Place(string(addon.Name), version.Version), severityWarning,
					fmt.Sprintf("addon %q version %q: %s", addon.Name, version.Version, slip))
			}
		}
	}
}

// The severities of findings, as GitHub names them.
const (
	severityError   = "error"
	severityWarning = "warning"
)

// finding is one problem; Line counts from 1, 0 is unknown.
type finding struct {
	File     string `json:"file"`
	Line     int    `json:"line,omitempty"`
	Severity string `json:"severity"`
	Message  string `json:"message"`
}

type findings []finding

// add adds a problem of an argument. Files of a folder are named as from the working directory.
func (f *findings) add(at string, place documents.Place, severity, message string) {
	at = filepath.ToSlash(at)
	file := path.Join(at, place.File)
	switch at {
	case cli.Input:
		file = cli.InputName
	case place.File:
		file = path.Clean(at)
	}
	*f = append(*f, finding{File: file, Line: place.Line, Severity: severity, Message: message})
}

func (f findings) count(severity string) (number int) {
	for _, one := range f {
		if one.Severity == severity {
			number++
		}
	}
	return number
}

// print prints findings. A table is not cut to the width of the terminal: the end of a message says what to do.
func (o *options) print(found findings) error {
	if o.format.Is(formatGitHub) {
		for _, one := range found {
			if _, err := io.WriteString(o.Out, one.annotation()); err != nil {
				return err
			}
		}
		return nil
	}
	table := view.Table{Columns: []view.Column{{Head: "PLACE"}, {Head: "SEVERITY"}, {Head: "PROBLEM"}}}
	for _, one := range found {
		place, colour := one.File, view.Red
		if one.Line > 0 {
			place = fmt.Sprintf("%s:%d", one.File, one.Line)
		}
		if one.Severity == severityWarning {
			colour = view.Yellow
		}
		table.Add(view.Cell{Text: place}, view.Cell{Text: one.Severity, Colour: colour}, view.Cell{Text: one.Message})
	}
	return o.PrintReport(&o.format, table, view.Style{Colour: o.Colour}, found)
}

// The characters that GitHub's commands escape, in messages and in properties.
var (
	inMessage  = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	inProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

// annotation is a command that makes GitHub show a finding at its line.
func (f finding) annotation() string {
	properties := "file=" + inProperty.Replace(text.Line(f.File))
	if f.Line > 0 {
		properties += fmt.Sprintf(",line=%d", f.Line)
	}
	return fmt.Sprintf("::%s %s::%s\n", f.Severity, properties, inMessage.Replace(text.Line(f.Message)))
}
