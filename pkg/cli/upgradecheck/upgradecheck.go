// Package upgradecheck is the verb that shows what an upgrade of Kubernetes would do to the add-ons of a cluster.
package upgradecheck

import (
	"context"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/trellis-addons/trellis/pkg/cli"
	"github.com/trellis-addons/trellis/pkg/cli/endpoint"
	"github.com/trellis-addons/trellis/pkg/serve/view"
)

const example = `  # What breaks if the cluster gets Kubernetes 1.37.2?
  kubectl addons upgrade-check --cluster 47s2ddlfgj --to 1.37.2`

// Command makes the command.
func Command(tool *cli.Tool) *cobra.Command {
	to := ""
	command := &cobra.Command{
		Use: "upgrade-check --to VERSION", Short: "Show which add-ons of a cluster an upgrade of Kubernetes would break",
		Long: "Show the effect of an upgrade of Kubernetes on each installation of a cluster: Keeps, Moves, Breaks or Unknown. Exit code 1:\n" +
			"an installation breaks. Nothing is changed.",
		Example: example, Args: cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		Annotations: cli.Needs("list addoninstallations", "list addoncatalogues", "get addoncatalogues with --cluster"),
	}
	tool.ClusterFlag(command)
	command.Flags().StringVar(&to, "to", "", "Kubernetes `VERSION` of the cluster after the upgrade, such as 1.37.2")
	_ = command.MarkFlagRequired("to")
	return tool.Reads(command, func(ctx context.Context, seed *cli.Platform, _ []string) (cli.Answer, error) {
		of, _, err := tool.Cluster(ctx, seed)
		if err != nil {
			return cli.Answer{}, err
		}
		asked := endpoint.Question{
			Path: "api/v1/upgrade-check", Body: map[string]string{"namespace": of.Namespace, "k8sVersion": to},
			Right: fmt.Sprintf("list addoninstallations.kubermatic.k8c.io and addoncatalogues.kubermatic.k8c.io in namespace %q", of.Namespace),
		}
		if !of.IsKKP() {
			asked.Query = url.Values{"cluster": {of.Name}}
		}
		var found view.UpgradeCheck
		if err := endpoint.Ask(ctx, seed, asked, &found); err != nil {
			return cli.Answer{}, err
		}
		made := cli.Answer{Tables: []view.Table{found.Table()}, Notes: []string{found.Summary()}, IsNo: found.Breaks > 0}
		for _, one := range found.Installations {
			made.Names = append(made.Names, one.Installation)
		}
		made.Object, err = cli.Document("UpgradeCheck", found)
		return made, err
	})
}
