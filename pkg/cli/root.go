package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

// Verb makes the command of one verb.
type Verb func(*Tool) *cobra.Command

const example = `  # The installations of a cluster, and the add-ons that it is offered
  kubectl addons list --cluster 47s2ddlfgj
  kubectl addons available --cluster 47s2ddlfgj`

// Command makes the whole command with its verbs.
func Command(tool *Tool, verbs ...Verb) *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-addons",
		Short: "Show and change the add-ons of user clusters",
		Long: "Show and change the add-ons of user clusters.\n\n" +
			"It uses the current context of the kubeconfig, as kubectl does. Verbs about installations need the context of a seed,\n" +
			"verbs about sets the context of the master.",
		Example:       example,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl addons"},
		SilenceErrors: true, SilenceUsage: true,
	}
	root.SetIn(tool.In)
	root.SetOut(tool.Out)
	root.SetErr(tool.ErrOut)
	tool.addFlags(root.PersistentFlags())
	for _, verb := range verbs {
		root.AddCommand(verb(tool))
	}
	return root
}

// Run runs the command line of a caller and returns the exit code. An error is one line on the error stream.
func Run(ctx context.Context, tool *Tool, arguments []string, verbs ...Verb) int {
	root, begun := Command(tool, verbs...), false
	notice(root, &begun)
	root.SetArgs(arguments)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return ExitDone
	}
	code := exitCode(err)
	if !begun {
		code = ExitUsage
	}
	if line := oneLine(err); line != "" {
		fmt.Fprintln(tool.ErrOut, tool.paint(red, "error: ")+line)
	}
	return code
}

// notice has begun set once a verb runs: errors before are those of the command line.
func notice(command *cobra.Command, begun *bool) {
	if run := command.RunE; run != nil {
		command.RunE = func(command *cobra.Command, arguments []string) error {
			*begun = true
			return run(command, arguments)
		}
	}
	for _, verb := range command.Commands() {
		notice(verb, begun)
	}
}
