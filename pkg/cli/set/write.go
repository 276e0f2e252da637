package set

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/cli"
)

const approveExample = `  # Approve the group that waits
  kubectl addons set approve monitoring

  # Approve the removals that wait
  kubectl addons set approve monitoring --removal`

type approval struct {
	*cli.Tool
	consent cli.Consent
	group   string
	removal bool
}

// writeNeeds are the rights of the verbs that change sets.
var writeNeeds = []string{"get,patch addonsets on the master", "list addonsets on the master for the nearest name of a misspelt one"}

// writing are the verbs that change sets.
func writing(tool *cli.Tool) []*cobra.Command {
	return []*cobra.Command{
		approve(tool),
		pausing(tool, true, &cobra.Command{Use: "pause SET", Short: "Pause a set: it writes nothing, not even in new clusters"}),
		pausing(tool, false, &cobra.Command{Use: "resume SET", Short: "Resume a paused set"}),
	}
}

func approve(tool *cli.Tool) *cobra.Command {
	o := &approval{Tool: tool}
	command := &cobra.Command{
		Use:   "approve SET",
		Short: "Approve a waiting group of a set, or the removals of the set",
		Long: "Approve a group of a set that waits for approval, and all groups before it, for the shown revision. With --removal, " +
			"approve the removals that wait, exactly those that are shown.",
		Example: approveExample, Args: cobra.ExactArgs(1), ValidArgsFunction: tool.Completes(1, tool.SetNames),
		Annotations: cli.Needs(writeNeeds...),
		RunE:        func(command *cobra.Command, arguments []string) error { return o.run(command.Context(), arguments[0]) },
	}
	o.consent.Flag(command)
	command.Flags().StringVar(&o.group, "group", "", "the group; default: the first that waits for approval")
	command.Flags().BoolVar(&o.removal, "removal", false, "approve removals")
	command.MarkFlagsMutuallyExclusive("group", "removal")
	return command
}

func (o *approval) run(ctx context.Context, name string) error {
	if err := o.consent.Check(o.Tool); err != nil {
		return err
	}
	master, set, err := o.Set(ctx, name)
	if err != nil {
		return err
	}
	if set.Status.ObservedGeneration < set.Generation {
		return cli.Fail(cli.ExitNo, "run the command again in a moment", "the status of set %q does not include its last change yet", name)
	}
	asked := o.open
	if o.removal {
		asked = removals
	}
	key, value, facts, err := asked(set)
	if err != nil {
		return err
	}
	if set.Annotations[key] == value {
		o.Done(set, "unchanged: it is approved already")
		return nil
	}
	if err := o.consent.Ask(ctx, o.Tool, facts, "Approve this?"); err != nil {
		return err
	}
	return o.Patch(ctx, master, set, cli.Annotating(key, value), "approved")
}

// open is the annotation that opens a group, and what moves then.
func (o *approval) open(set *v1.AddonSet) (key, value string, facts []string, err error) {
	groups := set.Status.Groups
	var names []string
	at := slices.IndexFunc(groups, func(one v1.GroupStatus) bool { return one.State == v1.GroupAwaitingApproval })
	for i, group := range groups {
		names = append(names, group.Name)
		if group.Name == o.group {
			at = i
		}
	}
	switch {
	case o.group != "" && !slices.Contains(names, o.group):
		return "", "", nil, cli.Fail(cli.ExitNotFound, "choose one of "+text.Names(names, 5), "set %q has no group %q", set.Name, o.group)
	case at < 0 && set.Status.Removal != nil:
		return "", "", nil, cli.Fail(cli.ExitNo, "add --removal for the removals that wait", "no group of set %q waits for approval", set.Name)
	case at < 0:
		return "", "", nil, cli.Fail(cli.ExitNo, "", "no group of set %q waits for approval", set.Name)
	case set.Status.Revision == "":
		return "", "", nil, cli.Fail(cli.ExitNo, "run the command again in a moment", "set %q has no revision yet", set.Name)
	}
	group := groups[at]
	facts = []string{
		fmt.Sprintf("AddonSet %q, revision %s: group %q (%s)", set.Name, set.Status.Revision, group.Name, group.State),
		fmt.Sprintf("  clusters: %d, of these behind: %d, failed: %d", group.Counts.Selected, group.Counts.Behind, group.Counts.Failed),
	}
	for _, change := range set.Status.Pending {
		facts = append(facts, pending(change))
	}
	return v1.AnnotationApprove, set.Status.Revision + "/" + group.Name, facts, nil
}

// pending is a line for a change that waits, in all groups.
func pending(change v1.PendingChange) string {
	line := fmt.Sprintf("  pending:  %s %s", strings.ToLower(string(change.Change)), change.Item)
	if change.From != "" || change.To != "" {
		line += fmt.Sprintf(" %s -> %s", change.From, change.To)
	}
	return line + " in " + text.Count(int(change.Clusters), "cluster")
}

// removals is the annotation that approves the removals that wait.
func removals(set *v1.AddonSet) (key, value string, facts []string, err error) {
	waiting := set.Status.Removal
	if waiting == nil || waiting.Word == "" {
		return "", "", nil, cli.Fail(cli.ExitNo, "", "no removal of set %q waits for approval", set.Name)
	}
	return v1.AnnotationRemovalApproved, waiting.Word, []string{fmt.Sprintf("AddonSet %q removes %s, as spec.removal says, in %s",
		set.Name, text.Count(int(waiting.Count), "installation"), text.Names(waiting.Clusters, 10))}, nil
}

func pausing(tool *cli.Tool, paused bool, made *cobra.Command) *cobra.Command {
	done, already := "resumed", "unchanged: it was not paused"
	if paused {
		done, already = "paused", "unchanged: it is paused already"
	}
	made.Args, made.Annotations = cobra.ExactArgs(1), cli.Needs(writeNeeds...)
	made.ValidArgsFunction = tool.Completes(1, tool.SetNames)
	made.RunE = func(command *cobra.Command, arguments []string) error {
		master, set, err := tool.Set(command.Context(), arguments[0])
		if err != nil {
			return err
		}
		if set.Spec.Paused == paused {
			tool.Done(set, already)
			return nil
		}
		return tool.Patch(command.Context(), master, set, cli.Setting("paused", paused), done)
	}
	return made
}
