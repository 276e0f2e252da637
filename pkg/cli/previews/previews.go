// Package previews has the verbs that show previews of the query endpoint: diff, render and values.
package previews

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/cli"
	"github.com/trellis-addons/trellis/pkg/cli/endpoint"
	"github.com/trellis-addons/trellis/pkg/serve/view"
	"github.com/trellis-addons/trellis/pkg/serve/view/preview"
)

// Diff makes the command that shows what a reconciliation would change.
func Diff(tool *cli.Tool) *cobra.Command {
	isLive := false
	command := shows(tool, &cobra.Command{
		Use: "diff NAME|ADDON", Short: "Show what a reconciliation would change, compared with what is applied",
		Long: "Show what a reconciliation of an installation would change, compared with what was applied last. With --live,\n" +
			"the cluster checks the objects too, in a dry run. Exit code 1: something differs, or would not be applied.",
		Example: `  # Which fields of which objects would change
  kubectl addons diff prometheus --cluster 47s2ddlfgj

  # Would the cluster accept them?
  kubectl addons diff prometheus --cluster 47s2ddlfgj --live`,
		Annotations: cli.Needs(needs...),
	}, &isLive, tool.Installation, func(made *preview.Preview, answer *cli.Answer) {
		answer.Tables, answer.IsNo = []view.Table{made.Differences()}, made.Differs()
	})
	endpoint.LiveFlag(command, &isLive)
	return command
}

// Render makes the command that shows what would be applied.
func Render(tool *cli.Tool) *cobra.Command {
	var given cli.Given
	command := shows(tool, &cobra.Command{
		Use: "render NAME|ADDON[@VERSION|@RANGE]", Short: "Show the objects that an installation would have",
		Long: "Show the objects that an installation would have: one that exists, or one of an add-on that is not installed. New objects\n" +
			"are shown with all fields, other objects with the fields that differ from what was applied last. Nothing is written.",
		Example: `  # All objects of an add-on, before it is installed
  kubectl addons render prometheus@1.x --cluster 47s2ddlfgj --set replicas=2`,
		Annotations: cli.Needs(append([]string{"create addoninstallations for an add-on that is not installed"}, needs...)...),
	}, new(bool), func(ctx context.Context, seed *cli.Platform, argument string) (*v1.AddonInstallation, error) {
		return wanted(ctx, tool, seed, argument, &given)
	}, func(made *preview.Preview, answer *cli.Answer) {
		answer.Tables, answer.IsNo = []view.Table{made.Applied()}, made.State != preview.StateComplete
	})
	given.Flags(command)
	return command
}

// Values makes the command that shows the merged values.
func Values(tool *cli.Tool) *cobra.Command {
	withOrigins := false
	command := shows(tool, &cobra.Command{
		Use: "values NAME|ADDON", Short: "Show the merged values of an installation, with their origins",
		Long: "Show the merged values that a reconciliation uses: from the add-on, from its form, and from the installation.",
		Example: `  # Which layer does each value come from?
  kubectl addons values prometheus --cluster 47s2ddlfgj --origin`,
		Annotations: cli.Needs(needs...),
	}, new(bool), tool.Installation, func(made *preview.Preview, answer *cli.Answer) {
		answer.Tables = []view.Table{made.Merged(withOrigins)}
	})
	command.Flags().BoolVar(&withOrigins, "origin", false, "show the layer that each value comes from")
	return command
}

// needs are the rights of all previews, beside those to reach the query endpoint.
var needs = []string{
	"get,update addoninstallations", "get addoncatalogues with --cluster", "list addoninstallations for an add-on instead of a name",
}

// find finds, or makes, the installation of an argument.
type find func(ctx context.Context, seed *cli.Platform, argument string) (*v1.AddonInstallation, error)

// shows completes a command that shows the preview of an installation, with a dry run if isLive is set when it runs.
func shows(
	tool *cli.Tool, command *cobra.Command, isLive *bool, of find, show func(*preview.Preview, *cli.Answer),
) *cobra.Command {
	tool.ClusterFlag(command)
	command.Args, command.ValidArgsFunction = cobra.ExactArgs(1), tool.Completes(1, tool.InstallationNames)
	return tool.Reads(command, func(ctx context.Context, seed *cli.Platform, arguments []string) (cli.Answer, error) {
		at, err := endpoint.Find(ctx, seed)
		if err != nil {
			return cli.Answer{}, err
		}
		one, err := of(ctx, seed, arguments[0])
		if err != nil {
			return cli.Answer{}, err
		}
		isPaused := one.Spec.Paused
		one.Spec.Paused = false // it is shown as it would be resumed
		made, err := at.Preview(ctx, one, *isLive)
		if err != nil {
			return cli.Answer{}, err
		}
		answer := cli.Answer{Names: cli.NamesIn(cli.WithKind(one))}
		show(&made, &answer)
		answer.Notes = append([]string{made.Summary()}, made.Notes()...)
		if isPaused {
			answer.Notes = append(answer.Notes, "the installation is paused: nothing is applied before it is resumed")
		}
		answer.Object, err = cli.Document("Preview", made)
		return answer, err
	})
}

// wanted is an installation that exists, with the given values over its own, or a new one of an add-on that the cluster is offered.
func wanted(ctx context.Context, tool *cli.Tool, seed *cli.Platform, argument string, given *cli.Given) (*v1.AddonInstallation, error) {
	demand, err := cli.ParseDemand(argument)
	if err != nil {
		return nil, err
	}
	var one *v1.AddonInstallation
	if demand.Version == "" {
		one, err = tool.Installation(ctx, seed, argument)
	}
	if missing, isCoded := errors.AsType[*cli.Error](err); demand.Version != "" || isCoded && missing.Code == cli.ExitNotFound {
		one, err = offered(ctx, tool, seed, demand)
	}
	if err != nil {
		return nil, err
	}
	own, err := cli.ReadValues(one.Spec.Values)
	if err != nil {
		return nil, err
	}
	merged, err := given.Values(tool, own)
	if err != nil {
		return nil, err
	}
	one.Spec.Values = cli.RawValues(merged)
	return one, nil
}

// offered is a new installation of an add-on.
func offered(ctx context.Context, tool *cli.Tool, seed *cli.Platform, demand cli.Demand) (*v1.AddonInstallation, error) {
	of, available, err := tool.Cluster(ctx, seed)
	if err != nil {
		return nil, err
	}
	if _, err := cli.Choose(available, demand); err != nil {
		return nil, err
	}
	return cli.NewInstallation(of, demand, ""), nil
}
