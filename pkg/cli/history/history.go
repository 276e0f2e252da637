// Package history is the verb that shows what an installation applied, as far as status and events know it.
package history

import (
	"context"
	"slices"

	"github.com/spf13/cobra"
	eventsv1 "k8s.io/api/events/v1"

	"github.com/trellis-addons/trellis/pkg/cli"
	"github.com/trellis-addons/trellis/pkg/serve/view"
)

const example = `  # The applied version, and the last changes
  kubectl addons history prometheus --cluster 47s2ddlfgj`

// Command makes the command.
func Command(tool *cli.Tool) *cobra.Command {
	command := &cobra.Command{
		Use: "history NAME", Short: "Show the applied version of an installation, and its last changes in the user cluster", Example: example,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: tool.Completes(1, tool.InstallationNames),
		Annotations:       cli.Needs("get addoninstallations", "list events.events.k8s.io", "get addoncatalogues with --cluster"),
	}
	tool.ClusterFlag(command)
	return tool.Reads(command, func(ctx context.Context, seed *cli.Platform, arguments []string) (cli.Answer, error) {
		one, err := tool.Installation(ctx, seed, arguments[0])
		if err != nil {
			return cli.Answer{}, err
		}
		events, err := seed.Events(ctx, one.Namespace, one.Name)
		if err != nil {
			return cli.Answer{}, err
		}
		events = slices.DeleteFunc(events, func(event eventsv1.Event) bool { return !view.IsChange(&event) })
		tables := []view.Table{view.Applied(one, tool.Now()), view.Events(events, tool.Now())}
		return cli.Answer{Tables: tables, Object: cli.WithKind(one)}, nil
	})
}
