// Package available is the verb that shows what a cluster is offered, and why the rest does not fit.
package available

import (
	"context"

	"github.com/spf13/cobra"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/cli"
	"github.com/trellis-addons/trellis/pkg/serve/view"
)

const example = `  # The add-ons that a cluster is offered, and the reasons why others do not fit
  kubectl addons available --cluster 47s2ddlfgj

  # Names only
  kubectl addons available --cluster 47s2ddlfgj -o name`

// Command makes the command.
func Command(tool *cli.Tool) *cobra.Command {
	command := &cobra.Command{
		Use:   "available",
		Short: "Show the add-ons that a cluster is offered, and why others do not fit",
		Long: "Show the add-ons that a cluster is offered, each with its versions, and the versions that do not fit, with the reason.\n\n" +
			"It reads the available catalogue of the cluster, which Trellis keeps up to date.",
		Example: example, Args: cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		Annotations: cli.Needs("get addoncatalogues"),
	}
	tool.ClusterFlag(command)
	return tool.Reads(command, func(ctx context.Context, seed *cli.Platform, _ []string) (cli.Answer, error) {
		_, found, err := tool.Cluster(ctx, seed)
		if err != nil {
			return cli.Answer{}, err
		}
		return answer(found), nil
	})
}

func answer(found *v1.AddonCatalogue) cli.Answer {
	found.SetGroupVersionKind(v1.GroupVersion.WithKind("AddonCatalogue"))
	made := cli.Answer{Object: found, Tables: []view.Table{view.Offers(found), view.NotOffered(found)}}
	for _, addon := range found.Spec.Addons {
		made.Names = append(made.Names, string(addon.Name))
	}
	if len(found.Spec.Addons) == 0 {
		made.Notes = append(made.Notes, "the cluster is offered no add-on")
	}
	if more := int(found.Status.ExcludedCount) - len(found.Status.Excluded); more > 0 {
		made.Notes = append(made.Notes, "and "+text.Count(more, "more version")+" that do not fit")
	}
	return made
}
