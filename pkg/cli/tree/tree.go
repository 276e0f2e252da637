// Package tree is the verb that shows the installations of a cluster in their order, with objects that are not healthy.
package tree

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/trellis-addons/trellis/pkg/cli"
	"github.com/trellis-addons/trellis/pkg/serve/view"
)

const example = `  # Who requested what in a cluster, what depends on it, and what is not healthy
  kubectl addons tree --cluster 47s2ddlfgj`

// Command makes the command.
func Command(tool *cli.Tool) *cobra.Command {
	command := &cobra.Command{
		Use:   "tree",
		Short: "Show who requested the installations of a cluster, what depends on them, and what is not healthy",
		Long: "Show the installations of a cluster by who requested them: the platform (core), an AddonSet, or users. Below an installation\n" +
			"are those that depend on it, and its objects that are not healthy.",
		Example: example, Args: cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		Annotations: cli.Needs("get addoncatalogues", "list addoninstallations"),
	}
	tool.ClusterFlag(command)
	return tool.Reads(command, func(ctx context.Context, seed *cli.Platform, _ []string) (cli.Answer, error) {
		of, _, err := tool.Cluster(ctx, seed)
		if err != nil {
			return cli.Answer{}, err
		}
		found, err := seed.Installations(ctx, of)
		answer := cli.Installations(found, tool.Now())
		answer.Tables = []view.Table{view.Tree(found, tool.Now())}
		return answer, err
	})
}
