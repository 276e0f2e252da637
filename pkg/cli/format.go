package cli

import (
	"encoding/json"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/trellis-addons/trellis/pkg/serve/view"
)

// Format is what flag -o chose, for an answer that is no API object: table, json, and what a verb adds.
type Format struct {
	chosen string
	known  []string
}

// Flag adds flag -o to a command.
func (f *Format) Flag(command *cobra.Command, more ...string) {
	f.known = append([]string{"table", "json"}, more...)
	command.Flags().StringVarP(&f.chosen, "output", "o", "table", "output format: "+strings.Join(f.known, ", "))
	_ = command.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(f.known, cobra.ShellCompDirectiveNoFileComp))
}

// Check refuses an unknown format before anything is read. Errors: ExitUsage.
func (f *Format) Check() error {
	if slices.Contains(f.known, f.chosen) {
		return nil
	}
	return Fail(ExitUsage, "choose one of "+strings.Join(f.known, ", "), "unknown output format %q", f.chosen)
}

// Is says whether a format was chosen.
func (f *Format) Is(format string) bool { return f.chosen == format }

// PrintReport prints an answer as a table in this style, or else as JSON.
func (t *Tool) PrintReport(f *Format, table view.Table, style view.Style, value any) error {
	if f.Is("table") {
		if len(table.Rows) == 0 {
			return nil
		}
		_, err := io.WriteString(t.Out, table.Text(style))
		return err
	}
	encoded, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return t.Write(string(encoded) + "\n")
}
