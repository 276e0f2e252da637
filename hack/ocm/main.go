// Command ocm runs what Open Cluster Management has as its example of an add-on: "agent", which copies ConfigMaps from the cluster
// namespace on the hub and renews a Lease in the user cluster, or "cleanup", which takes the copies away. It is a module of its own, so
// that nothing of it is in the product.
//
// Flags and work are upstream's. Its own command line is not taken, since that serves on port 8443 of all addresses, which no flag
// changes.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	agent "open-cluster-management.io/addon-framework/examples/helloworld_agent"
	_ "open-cluster-management.io/api/addon/v1beta1" // whose folder has the kind that the agent reads
)

// addon is what the agent is called where no flag says otherwise.
const addon = "helloworld"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	toRun, cleaning := agent.NewAgentOptions(addon), agent.NewCleanupAgentOptions(addon)
	root := &cobra.Command{Use: "ocm", SilenceUsage: true}
	root.AddCommand(
		command("agent", toRun.AddFlags, toRun.RunAgent),
		command("cleanup", cleaning.AddFlags, cleaning.RunAgent),
	)
	if err := root.ExecuteContext(ctx); err != nil {
		os.Exit(1) // cobra has told why
	}
}

// command is one of upstream's, with the flag for where it runs that upstream's command line gives to all.
func command(name string, flags func(*cobra.Command), run func(context.Context, *rest.Config) error) *cobra.Command {
	var kubeconfig string
	made := &cobra.Command{
		Use: name, Args: cobra.NoArgs,
		RunE: func(made *cobra.Command, _ []string) error {
			config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
			if err != nil {
				return fmt.Errorf("reading the kubeconfig: %w", err)
			}
			return run(made.Context(), config)
		},
	}
	made.Flags().StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig of the cluster that it runs in")
	flags(made)
	return made
}
