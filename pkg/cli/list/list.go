// Package list is the verb that lists installations.
package list

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/cli"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/serve/view"
)

const example = `  # The installations of a cluster
  kubectl addons list --cluster 47s2ddlfgj

  # The installations of all clusters that fail, with their messages
  kubectl addons list -A --state Failing -o wide

  # The installed version of an add-on on each cluster
  kubectl addons list -A --addon prometheus -o jsonpath='{range .items[*]}{.metadata.namespace} {.status.version}{"\n"}{end}'`

type options struct {
	*cli.Tool
	everywhere   bool
	addon, state string
}

// Command makes the command.
func Command(tool *cli.Tool) *cobra.Command {
	o := &options{Tool: tool}
	command := &cobra.Command{
		Use:   "list",
		Short: "List the installations of a cluster, a namespace or all clusters",
		Long: "List the installations of the cluster in --cluster, or of the namespace in -n or in the context, or of all clusters.\n\n" +
			"State is Ready, UnderWay (nothing to do), Failing (a user must act) or Unknown (the cluster does not answer).",
		Aliases: []string{"ls"}, Example: example, Args: o.check, ValidArgsFunction: cobra.NoFileCompletions,
		Annotations: cli.Needs("list addoninstallations", "get addoncatalogues with --cluster"),
	}
	tool.ClusterFlag(command)
	command.Flags().BoolVarP(&o.everywhere, "all-namespaces", "A", false, "list the installations of all clusters")
	command.Flags().StringVar(&o.addon, "addon", "", "only those of this add-on")
	command.Flags().StringVar(&o.state, "state", "", "only those in this state: "+strings.Join(view.States, ", "))
	_ = command.RegisterFlagCompletionFunc("addon", tool.Completes(0, tool.AddonNames))
	_ = command.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(view.States, cobra.ShellCompDirectiveNoFileComp))
	return tool.Reads(command, o.read)
}

func (o *options) read(ctx context.Context, seed *cli.Platform, _ []string) (cli.Answer, error) {
	var of target.Ref
	var err error
	if !o.everywhere {
		if of, err = o.Place(ctx, seed); err != nil {
			return cli.Answer{}, err
		}
	}
	found, err := seed.Installations(ctx, of)
	if err != nil {
		return cli.Answer{}, err
	}
	found = slices.DeleteFunc(found, func(one v1.AddonInstallation) bool {
		row := view.RowOf(&one, o.Now())
		return o.addon != "" && row.Addon != o.addon || o.state != "" && row.State != o.state
	})
	return cli.Installations(found, o.Now()), nil
}

// check refuses what no list can have.
func (o *options) check(command *cobra.Command, arguments []string) error {
	if o.state != "" && !slices.Contains(view.States, o.state) {
		return cli.Fail(cli.ExitUsage, "use one of "+strings.Join(view.States, ", "), "unknown state %q", o.state)
	}
	if o.everywhere && o.NamesCluster() {
		return cli.Fail(cli.ExitUsage, "give one of them", "--all-namespaces and --cluster exclude each other")
	}
	return cobra.NoArgs(command, arguments)
}
