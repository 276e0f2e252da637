// Package catalogue is the verb for authors of catalogues, with a part for each thing that it does.
package catalogue

import (
	"github.com/spf13/cobra"

	"github.com/trellis-addons/trellis/pkg/cli"
	"github.com/trellis-addons/trellis/pkg/cli/catalogue/diff"
	"github.com/trellis-addons/trellis/pkg/cli/catalogue/lint"
	"github.com/trellis-addons/trellis/pkg/cli/catalogue/render"
)

// Command makes the verb. Open is for the part that renders.
func Command(open func() (render.Local, error)) cli.Verb {
	return func(tool *cli.Tool) *cobra.Command {
		command := &cobra.Command{
			Use:     "catalogue",
			Short:   "Check and render catalogues, and compare them with those of the master",
			Long:    "Check and render files of catalogues without a cluster, and show what they would change on the master.",
			Aliases: []string{"catalog"}, Args: cobra.NoArgs,
			Example: lint.Example + "\n\n" + diff.Example + "\n\n" + render.Example,
			RunE:    func(command *cobra.Command, _ []string) error { return command.Help() },
		}
		command.AddCommand(lint.Command(tool), diff.Command(tool), render.Command(open)(tool))
		return command
	}
}
