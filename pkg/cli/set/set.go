// Package set has the verbs about AddonSets.
package set

import (
	"context"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/cli"
	"github.com/trellis-addons/trellis/pkg/serve/view"
)

const exampleShow = `  # Groups, pending changes and failing clusters of a set
  kubectl addons set show monitoring -n kubermatic`

// Command makes the command with its verbs.
func Command(tool *cli.Tool) *cobra.Command {
	command := &cobra.Command{
		Use: "set", Short: "Show, preview, approve, pause and resume AddonSets",
		Long: "Show AddonSets. On the master, show the sets themselves, with all seeds. On a seed, show its copies of the sets.",
	}
	listing := &cobra.Command{
		Use: "list", Short: "List AddonSets", Args: cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		Annotations: cli.Needs("list addonsets"),
	}
	showing := &cobra.Command{
		Use: "show NAME", Short: "Show the groups of an AddonSet, changes that wait, and clusters that are not up to date",
		Example: exampleShow, Args: cobra.ExactArgs(1), ValidArgsFunction: tool.Completes(1, tool.SetNames),
		Annotations: cli.Needs("list addonsets"),
	}
	command.AddCommand(
		tool.ReadsSets(listing, func(ctx context.Context, of *cli.Platform, _ []string) (cli.Answer, error) {
			return list(ctx, tool, of)
		}),
		tool.ReadsSets(showing, func(ctx context.Context, of *cli.Platform, arguments []string) (cli.Answer, error) {
			return show(ctx, tool, of, arguments[0])
		}),
	)
	command.AddCommand(preview(tool))
	command.AddCommand(writing(tool)...)
	return command
}

func list(ctx context.Context, tool *cli.Tool, of *cli.Platform) (cli.Answer, error) {
	sets, err := read(ctx, tool, of)
	if err != nil {
		return cli.Answer{}, err
	}
	answer := cli.Answer{Tables: []view.Table{view.Sets(sets.Items, tool.Now())}, Object: sets}
	if len(sets.Items) == 0 {
		answer.Notes = []string{"no sets"}
	}
	return answer, nil
}

func show(ctx context.Context, tool *cli.Tool, of *cli.Platform, name string) (cli.Answer, error) {
	sets, err := read(ctx, tool, of)
	if err != nil {
		return cli.Answer{}, err
	}
	for i := range sets.Items {
		if one := &sets.Items[i]; one.Name == name {
			return cli.Answer{Tables: view.Set(one, tool.Now()), Object: one}, nil
		}
	}
	return cli.Answer{}, cli.Nearest("set", name, cli.NamesOf(sets.Items, (*v1.AddonSet).GetName))
}

// read lists the sets of the namespace, of all without one.
func read(ctx context.Context, tool *cli.Tool, of *cli.Platform) (*v1.AddonSetList, error) {
	namespace, err := tool.Namespace()
	if err != nil {
		return nil, err
	}
	sets := &v1.AddonSetList{}
	if err := of.List(ctx, sets, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	sets.SetGroupVersionKind(v1.GroupVersion.WithKind("AddonSetList"))
	for i := range sets.Items {
		sets.Items[i].SetGroupVersionKind(v1.GroupVersion.WithKind("AddonSet"))
	}
	return sets, nil
}
