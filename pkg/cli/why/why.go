// Package why is the verb that collects all reasons why an add-on is not installed, or not ready, in a cluster.
package why

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/trellis-addons/trellis/pkg/cli"
	"github.com/trellis-addons/trellis/pkg/serve/view"
)

const example = `  # Would a version fit, and what is wrong with installations of the add-on?
  kubectl addons why prometheus@2.x --cluster 47s2ddlfgj`

// Command makes the command.
func Command(tool *cli.Tool) *cobra.Command {
	command := &cobra.Command{
		Use:   "why ADDON[@VERSION|RANGE]",
		Short: "Show all reasons why an add-on does not fit a cluster, or is not ready there",
		Long: "Show all reasons why an add-on does not fit a cluster, or is not ready there: versions that don't fit, and conditions of its\n" +
			"installations, each with what to do. Exit code 1: there is a reason.",
		Example: example, Args: cobra.ExactArgs(1), ValidArgsFunction: tool.Completes(1, tool.AddonNames),
		Annotations: cli.Needs("get addoncatalogues", "list addoninstallations"),
	}
	tool.ClusterFlag(command)
	return tool.Reads(command, func(ctx context.Context, seed *cli.Platform, arguments []string) (cli.Answer, error) {
		of, available, err := tool.Cluster(ctx, seed)
		if err != nil {
			return cli.Answer{}, err
		}
		installations, err := seed.Installations(ctx, of)
		if err != nil {
			return cli.Answer{}, err
		}
		demand, err := cli.ParseDemand(arguments[0])
		if err != nil {
			return cli.Answer{}, err
		}
		addon, wanted := demand.Addon, demand.Version
		known := view.Addons(available)
		for _, one := range installations {
			known = append(known, string(one.Spec.AddonRef.Name))
		}
		if !slices.Contains(known, addon) {
			return cli.Answer{}, cli.Nearest("add-on", addon, known)
		}
		verdict := view.Why(addon, wanted, available, installations)
		answer := cli.Answer{Tables: verdict.Tables(), Names: []string{addon}, IsNo: !verdict.Fits}
		if int(available.Status.ExcludedCount) > len(available.Status.Excluded) {
			answer.Notes = append(answer.Notes, "the catalogue lists only some of the versions that don't fit")
		}
		answer.Object, err = cli.Document("Verdict", verdict)
		return answer, err
	})
}
