// Package status is the verb that shows the state of installations: once, or as it changes.
package status

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/cli"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/serve/view"
)

const example = `  # The conditions of an installation, and what to do
  kubectl addons status prometheus --cluster 47s2ddlfgj

  # Print a line for each change in a cluster, until interrupted
  kubectl addons status --cluster 47s2ddlfgj --watch`

// rest is the time between two watches, so that a server that ends each at once is not flooded.
const rest = time.Second

type options struct {
	*cli.Tool
	watching bool
}

// Command makes the command.
func Command(tool *cli.Tool) *cobra.Command {
	o := &options{Tool: tool}
	command := &cobra.Command{
		Use:   "status [NAME]",
		Short: "Show the conditions of an installation and what to do, or the states of all",
		Long: "Show the conditions of an installation in their order, its objects that are not healthy, and what to do. Without NAME: the\n" +
			"states of all installations of the cluster or namespace. With --watch: a line for each change, until interrupted.",
		Example: example, Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: tool.Completes(1, tool.InstallationNames),
		Annotations: cli.Needs("list addoninstallations without NAME", "get addoninstallations with NAME", "get addoncatalogues with --cluster",
			"list,watch addoninstallations with --watch"),
	}
	tool.ClusterFlag(command)
	command.Flags().BoolVarP(&o.watching, "watch", "w", false, "print a line for each change, until interrupted")
	read := tool.Reads(command, o.read).RunE
	command.RunE = func(command *cobra.Command, arguments []string) error {
		if o.watching {
			return o.watch(command.Context(), strings.Join(arguments, ""))
		}
		return read(command, arguments)
	}
	return command
}

func (o *options) read(ctx context.Context, seed *cli.Platform, arguments []string) (cli.Answer, error) {
	if len(arguments) == 1 {
		one, err := o.Installation(ctx, seed, arguments[0])
		if err != nil {
			return cli.Answer{}, err
		}
		return cli.Answer{Tables: view.Status(one, o.Now()), Object: cli.WithKind(one)}, nil
	}
	of, err := o.Place(ctx, seed)
	if err != nil {
		return cli.Answer{}, err
	}
	found, err := seed.Installations(ctx, of)
	return cli.Installations(found, o.Now()), err
}

// watch prints a line for each change of an installation, of all if no name is given, until the context ends.
func (o *options) watch(ctx context.Context, name string) error {
	seed, err := o.Seed(ctx)
	if err != nil {
		return err
	}
	of, err := o.Place(ctx, seed)
	if err != nil {
		return err
	}
	options := &client.ListOptions{Namespace: of.Namespace}
	if name != "" {
		one, err := seed.Installation(ctx, of, name)
		if err != nil {
			return err
		}
		options.FieldSelector = fields.OneTermEqualSelector("metadata.name", one.Name)
	}
	shown := lines{}
	for {
		err := o.follow(ctx, seed, options, watched{of, shown})
		if ended := ctx.Err(); ended == nil && err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(rest):
		}
	}
}

// lines are those that were printed last of installations that exist.
type lines map[client.ObjectKey]string

// watched are the installations of a place, with what was shown of them.
type watched struct {
	of    target.Ref
	shown lines
}

// follow shows all installations, each that changes, and those that are gone since the watch before, until a watch ends.
func (o *options) follow(ctx context.Context, seed *cli.Platform, options *client.ListOptions, all watched) error {
	var list v1.AddonInstallationList
	if err := seed.List(ctx, &list, options); err != nil {
		return err
	}
	gone := maps.Clone(all.shown)
	for i := range list.Items {
		o.show(&list.Items[i], all)
		delete(gone, client.ObjectKeyFromObject(&list.Items[i]))
	}
	for _, key := range slices.SortedFunc(maps.Keys(gone), func(a, b client.ObjectKey) int { return cmp.Compare(a.String(), b.String()) }) {
		o.showGone(key, all.shown)
	}
	since := *options
	since.Raw = &metav1.ListOptions{ResourceVersion: list.ResourceVersion}
	changes, err := seed.Watch(ctx, &v1.AddonInstallationList{}, &since)
	if err != nil {
		return err
	}
	defer changes.Stop()
	for change := range changes.ResultChan() {
		one, isOne := change.Object.(*v1.AddonInstallation)
		switch {
		case change.Type == watch.Error && apierrors.IsResourceExpired(apierrors.FromObject(change.Object)):
			return nil
		case change.Type == watch.Error:
			return apierrors.FromObject(change.Object)
		case isOne && change.Type == watch.Deleted:
			o.showGone(client.ObjectKeyFromObject(one), all.shown)
		case isOne:
			o.show(one, all)
		}
	}
	return nil
}

// show prints a line if something of an installation changed that a line has.
func (o *options) show(one *v1.AddonInstallation, all watched) {
	if all.of.Name != "" && !all.of.Has(one) {
		return
	}
	row, key := view.RowOf(one, o.Now()), client.ObjectKeyFromObject(one)
	words := strings.Join(strings.Fields(strings.Join([]string{row.State, row.Version, row.Reason, row.Objects, row.Message}, " ")), " ")
	if all.shown[key] != words {
		all.shown[key] = words
		o.print(key, words)
	}
}

// showGone prints that an installation which was shown is gone.
func (o *options) showGone(key client.ObjectKey, shown lines) {
	if _, isShown := shown[key]; isShown {
		delete(shown, key)
		o.print(key, "Gone")
	}
}

func (o *options) print(about client.ObjectKey, words string) {
	line := text.Line(o.Now().Format(time.TimeOnly) + " " + about.String() + " " + words)
	if o.Width > 0 {
		line = view.Cut(line, o.Width)
	}
	fmt.Fprintln(o.Out, line)
}
