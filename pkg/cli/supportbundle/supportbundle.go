// Package supportbundle is the verb that collects what helps to find a fault, without values and without Secrets.
package supportbundle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/trellis-addons/trellis/pkg/base/buildinfo"
	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/cli"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
)

const example = `  # A bundle of a seed, or of the master
  kubectl addons support-bundle

  # A bundle about one cluster only
  kubectl addons support-bundle --cluster 47s2ddlfgj -f support.tar.gz`

type options struct {
	*cli.Tool
	file, platform string
}

// Command makes the command.
func Command(tool *cli.Tool) *cobra.Command {
	o := &options{Tool: tool}
	command := &cobra.Command{
		Use: "support-bundle", Short: "Collect data for support in a file, without values and Secrets",
		Long: "Collect catalogues, installations, sets, events, and the managers' Deployments and logs in a file for support.\n\n" +
			"It reads no Secrets. Values are replaced, and their paths stay. File contents.txt in it lists what is in it, and what was left " +
			"out, for example because a right is missing. Check it before you pass it on: names, addresses and logs are not replaced.",
		Example: example, Args: cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		Annotations: cli.Needs("list addoncatalogues if allowed", "list addoninstallations if allowed", "list addonsets if allowed",
			"list events.events.k8s.io if allowed", "list customresourcedefinitions.apiextensions.k8s.io if allowed", "list configmaps if allowed",
			"list deployments.apps if allowed", "list pods if allowed", "get pods/log if allowed"),
		RunE: func(command *cobra.Command, _ []string) error { return o.run(command.Context()) },
	}
	tool.ClusterFlag(command)
	command.Flags().StringVarP(&o.file, "file", "f", "", "`FILE.tar.gz` that is created; default: trellis-support-TIME.tar.gz")
	command.Flags().StringVar(&o.platform, "platform-namespace", "kubermatic", "namespace of the managers")
	return command
}

func (o *options) run(ctx context.Context) error {
	of, err := o.WithSets(ctx)
	if err != nil {
		return err
	}
	var scope target.Ref
	if o.NamesCluster() {
		if scope, _, err = o.Cluster(ctx, of); err != nil {
			return err
		}
	}
	name := cmp.Or(o.file, "trellis-support-"+o.Now().UTC().Format("20060102-150405")+".tar.gz")
	file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return cli.Fail(cli.ExitRefused, "choose another by -f", "file %q exists", name)
	} else if err != nil {
		return &cli.Error{Code: cli.ExitUsage, Hint: "choose a file by -f", Err: err}
	}
	made := &bundle{Platform: of, scope: scope, namespace: o.platform}
	made.put("versions.txt", fmt.Appendf(nil, "time: %s\nkubectl addons: %+v\nAPI server: %s\nseed: %v\nmaster: %v\n",
		o.Now().UTC().Format(time.RFC3339), buildinfo.Read(), of.Server, of.IsSeed, of.IsMaster))
	made.collect(ctx)
	if err := errors.Join(ctx.Err(), made.write(file, o.Now()), file.Close()); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	for _, left := range made.left {
		o.Note("left out: %s", left)
	}
	fmt.Fprintf(o.Out, "%s written: %s\n", text.Line(name), text.Count(len(made.files)+1, "file"))
	return nil
}
