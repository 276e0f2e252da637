// Package events is the verb that shows the events of installations.
package events

import (
	"context"

	"github.com/spf13/cobra"
	eventsv1 "k8s.io/api/events/v1"

	"github.com/trellis-addons/trellis/pkg/cli"
	"github.com/trellis-addons/trellis/pkg/serve/view"
)

const example = `  # Events of all installations of a cluster, the newest first
  kubectl addons events --cluster 47s2ddlfgj`

// Command makes the command.
func Command(tool *cli.Tool) *cobra.Command {
	command := &cobra.Command{
		Use: "events [NAME]", Short: "Show the events of installations, the newest first", Example: example, Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: tool.Completes(1, tool.InstallationNames),
		Annotations:       cli.Needs("list events.events.k8s.io", "get addoninstallations with NAME", "get addoncatalogues with --cluster"),
	}
	tool.ClusterFlag(command)
	return tool.Reads(command, func(ctx context.Context, seed *cli.Platform, arguments []string) (cli.Answer, error) {
		of, err := tool.Place(ctx, seed)
		if err != nil {
			return cli.Answer{}, err
		}
		var name string
		if len(arguments) == 1 {
			one, err := seed.Installation(ctx, of, arguments[0])
			if err != nil {
				return cli.Answer{}, err
			}
			name = one.Name
		}
		found, err := seed.Events(ctx, of.Namespace, name)
		list := &eventsv1.EventList{Items: found}
		list.SetGroupVersionKind(eventsv1.SchemeGroupVersion.WithKind("EventList"))
		answer := cli.Answer{Tables: []view.Table{view.Events(found, tool.Now())}, Object: list}
		for i := range found {
			found[i].SetGroupVersionKind(eventsv1.SchemeGroupVersion.WithKind("Event"))
		}
		if len(found) == 0 {
			answer.Notes = append(answer.Notes, "no events: API servers keep events for an hour, unless configured otherwise")
		}
		return answer, err
	})
}
