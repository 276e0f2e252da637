package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/serve/view"
)

// Output is the format that -o chose.
type Output struct {
	format string
	// own are formats of the verb's own.
	own []string
}

const formats = "table, wide, name, json, yaml, jsonpath=..., jsonpath-file=..., go-template=..., go-template-file=..."

// Flag adds flag -o to a command.
func (o *Output) Flag(command *cobra.Command) {
	command.Flags().StringVarP(&o.format, "output", "o", "table", "output format: "+strings.Join(append(slices.Clone(o.own), formats), ", "))
	_ = command.RegisterFlagCompletionFunc("output", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return append([]string{"table", "wide", "name", "json", "yaml", "jsonpath="}, o.own...),
			cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	})
}

// ObjectFlag adds flag -o for a verb that prints one object on request.
func (o *Output) ObjectFlag(command *cobra.Command) {
	command.Flags().StringVarP(&o.format, "output", "o", "yaml", "format of --dry-run: yaml, json, name, jsonpath=..., go-template=...")
}

// Answer is what a verb prints, in each format.
type Answer struct {
	// Tables are for people; wide has all of their columns.
	Tables []view.Table
	// Names are what -o name prints, one a line; nil: those of Object, or of its items, as kubectl prints them.
	Names []string
	// Object is for programs, with its kind set.
	Object runtime.Object
	// Lines are what formats of the verb's own print.
	Lines map[string][]string
	// Notes are for people beside tables.
	Notes []string
	// IsNo ends the command with ExitNo.
	IsNo bool
}

// Check refuses an unknown format before anything is read. Errors: ExitUsage.
func (o *Output) Check() error {
	if o.IsTable() || o.format == "name" || slices.Contains(o.own, o.format) {
		return nil
	}
	_, err := o.printer()
	return err
}

// IsTable says whether the output is for people, who also see notes on the error stream.
func (o *Output) IsTable() bool { return o.format == "table" || o.format == "wide" || o.format == "" }

func (o *Output) printer() (printers.ResourcePrinter, error) {
	made, err := genericclioptions.NewJSONYamlPrintFlags().ToPrinter(strings.ToLower(o.format))
	if genericclioptions.IsNoCompatiblePrinterError(err) {
		made, err = genericclioptions.NewKubeTemplatePrintFlags().ToPrinter(o.format)
	}
	if genericclioptions.IsNoCompatiblePrinterError(err) {
		return nil, Fail(ExitUsage, "choose one of "+formats, "unknown output format %q", o.format)
	} else if err != nil {
		return nil, &Error{Code: ExitUsage, Hint: "see `kubectl explain` for the fields", Err: err}
	}
	return made, nil
}

// Read makes the answer of a verb from an API server and the verb's arguments.
type Read func(ctx context.Context, of *Platform, arguments []string) (Answer, error)

// Reads completes a command that prints what it reads on a seed: it adds flag -o, and connects. The answer may have formats of its own.
func (t *Tool) Reads(command *cobra.Command, read Read, formats ...string) *cobra.Command {
	return t.reads(command, t.Seed, read, formats)
}

// ReadsSets is Reads for AddonSets, which a master has, and of which seeds have copies.
func (t *Tool) ReadsSets(command *cobra.Command, read Read) *cobra.Command {
	return t.reads(command, t.WithSets, read, nil)
}

func (t *Tool) reads(
	command *cobra.Command, connect func(context.Context) (*Platform, error), read Read, formats []string,
) *cobra.Command {
	output := Output{own: formats}
	output.Flag(command)
	command.RunE = func(command *cobra.Command, arguments []string) error {
		if err := output.Check(); err != nil {
			return err
		}
		platform, err := connect(command.Context())
		if err != nil {
			return err
		}
		answer, err := read(command.Context(), platform, arguments)
		if err != nil {
			return err
		}
		if err := t.Print(&output, answer); err != nil {
			return err
		}
		if answer.IsNo {
			return &Error{Code: ExitNo, Err: errNo}
		}
		return nil
	}
	return command
}

// errNo is the error of an answer that is no: what it means was printed already.
var errNo = errors.New("")

// Print prints an answer.
func (t *Tool) Print(o *Output, answer Answer) error {
	switch {
	case o.IsTable():
		style := view.Style{Width: t.Width, Wide: o.format == "wide", Colour: t.Colour}
		tables := make([]string, 0, len(answer.Tables))
		for _, table := range answer.Tables {
			if len(table.Rows) > 0 {
				tables = append(tables, table.Text(style))
			}
		}
		fmt.Fprint(t.Out, strings.Join(tables, "\n"))
		for _, note := range answer.Notes {
			t.Note("%s", note)
		}
		return nil
	case o.format == "name", slices.Contains(o.own, o.format):
		lines := answer.Lines[o.format]
		if o.format == "name" {
			if lines = answer.Names; lines == nil {
				lines = NamesIn(answer.Object)
			}
		}
		for _, line := range lines {
			fmt.Fprintln(t.Out, text.Line(line))
		}
		return nil
	}
	printer, err := o.printer()
	if err != nil {
		return err
	}
	var made bytes.Buffer
	if err := printer.PrintObj(answer.Object, &made); err != nil {
		return &Error{Code: ExitUsage, Hint: "see `-o yaml` for the fields", Err: err}
	}
	return t.Write(made.String())
}

// Write writes output as it is, without what controls a terminal.
func (t *Tool) Write(output string) error {
	_, err := io.WriteString(t.Out, t.clean(output))
	return err
}

// clean keeps texts of others from controlling a terminal. Programs get them as they are.
func (t *Tool) clean(output string) string {
	if t.Width == 0 {
		return output
	}
	lines := strings.Split(output, "\n")
	for i, line := range lines {
		lines[i] = text.Line(line)
	}
	return strings.Join(lines, "\n")
}

// Note tells people something beside the output, on the error stream.
func (t *Tool) Note(format string, arguments ...any) {
	fmt.Fprintln(t.ErrOut, text.Line(fmt.Sprintf(format, arguments...)))
}

const red = view.Red

func (t *Tool) paint(colour view.Colour, words string) string {
	if !t.Colour {
		return words
	}
	return colour.Paint(words)
}

// Installations is the answer that lists installations.
func Installations(found []v1.AddonInstallation, now time.Time) Answer {
	items, rows := &v1.AddonInstallationList{Items: found}, view.Rows(found, now)
	items.SetGroupVersionKind(v1.GroupVersion.WithKind("AddonInstallationList"))
	for i := range items.Items {
		WithKind(&items.Items[i])
	}
	return Answer{Tables: []view.Table{view.Installations(rows)}, Object: items, Notes: []string{view.Counts(rows)}}
}

// NamesIn are kind.group/name of an object, or of the items of a list.
func NamesIn(of runtime.Object) (names []string) {
	add := func(one runtime.Object) error {
		if object, isNamed := one.(client.Object); isNamed && object.GetName() != "" {
			kind := one.GetObjectKind().GroupVersionKind()
			names = append(names, strings.ToLower(kind.Kind)+"."+kind.Group+"/"+object.GetName())
		}
		return nil
	}
	if meta.IsListType(of) {
		_ = meta.EachListItem(of, add) // add has no error
	} else {
		_ = add(of)
	}
	return names
}

// WithKind sets the kind of an installation, which objects of a typed client lack.
func WithKind(one *v1.AddonInstallation) *v1.AddonInstallation {
	one.SetGroupVersionKind(v1.GroupVersion.WithKind("AddonInstallation"))
	return one
}

// Document is an answer of our own for programs, which is no API object.
func Document(kind string, value any) (runtime.Object, error) {
	encoded, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	made := &unstructured.Unstructured{}
	if err := json.Unmarshal(encoded, &made.Object); err != nil {
		return nil, err
	}
	made.SetAPIVersion(documentVersion)
	made.SetKind(kind)
	return made, nil
}

// documentVersion is the apiVersion of Documents.
const documentVersion = "cli.kubermatic.k8c.io/v1"
