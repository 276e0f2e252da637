package uninstall

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/cli"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
)

const exampleDisable = `  # Remove two add-ons from two clusters of a seed
  kubectl addons disable --names prometheus,podinfo --clusters 47s2ddlfgj,c9k2x7wqlm

  # Remove the AddonSet that enabled an add-on in these clusters, with its installations
  kubectl addons disable --names prometheus --selector env=prod --context master`

// disabling removes add-ons from several clusters.
type disabling struct {
	options
	clusters cli.Clusters
}

// Disable makes the command that removes add-ons from several clusters, with the flags of clusteradm.
func Disable(tool *cli.Tool) *cobra.Command {
	o := &disabling{options: options{Tool: tool}}
	command := &cobra.Command{
		Use:   "disable --names ADDONS {--clusters CLUSTERS | --selector LABELS | --all-clusters}",
		Short: "Remove add-ons from several clusters",
		Long: "Remove add-ons from several clusters. For at most 5 clusters of a seed it deletes AddonInstallations, as `uninstall` does. " +
			"Otherwise it deletes the AddonSets that `enable` created with the same flags, on the master, and confirms their deletion.\n\n" +
			"It shows what it will remove and asks; without a terminal, --yes is required. An add-on that is not enabled is not an error. " +
			"Versions in --names have no effect.",
		Example: exampleDisable, Args: cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		Annotations: cli.Needs("get addoncatalogues", "list,delete addoninstallations", "get,patch,delete addonsets with sets",
			"get configmaps with sets"),
		RunE: func(command *cobra.Command, _ []string) error { return o.run(command.Context()) },
	}
	o.clusters.Flags(command)
	o.consent.Flag(command)
	return command
}

func (o *disabling) run(ctx context.Context) error {
	if err := o.consent.Check(o.Tool); err != nil {
		return err
	}
	platform, sets, err := o.clusters.Connect(ctx, o.Tool)
	if err != nil {
		return err
	}
	if sets != "" {
		return o.sets(ctx, platform, sets)
	}
	var names, facts []string
	for _, one := range o.clusters.Addons {
		names = append(names, one.Addon)
	}
	var found []*v1.AddonInstallation
	for _, name := range o.clusters.Names {
		of, _, err := o.FindCluster(ctx, platform, name)
		if err != nil {
			return err
		}
		added, lacking, _, err := o.ofAddons(ctx, platform, of, names)
		if err != nil {
			return err
		}
		for _, addon := range lacking {
			facts = append(facts, fmt.Sprintf("unchanged: add-on %q is not enabled in cluster %q", addon, of.LongName()))
		}
		for _, one := range added {
			if err := cli.CheckOwned(one, "removed"); err != nil {
				return err
			}
		}
		found = append(found, added...)
	}
	return o.removeAll(ctx, platform, found, facts)
}

// ofAddons are the installations of add-ons in a cluster, in all clusters if it is empty. Lacking are the add-ons that have none.
func (o *options) ofAddons(
	ctx context.Context, seed *cli.Platform, of target.Ref, addons []string,
) (found []*v1.AddonInstallation, lacking, known []string, err error) {
	all, err := seed.Installations(ctx, of)
	if err != nil {
		return nil, nil, nil, err
	}
	for _, addon := range addons {
		before := len(found)
		for i := range all {
			known = append(known, string(all[i].Spec.AddonRef.Name))
			if string(all[i].Spec.AddonRef.Name) == addon {
				found = append(found, &all[i])
			}
		}
		if len(found) == before {
			lacking = append(lacking, addon)
		}
	}
	return found, lacking, known, nil
}

// everywhere removes the installations of add-ons in all clusters of a seed, except for those that others own. Errors:
// ExitNotFound with the nearest add-on.
func (o *options) everywhere(ctx context.Context, seed *cli.Platform, addons []string) error {
	all, lacking, known, err := o.ofAddons(ctx, seed, target.Ref{}, addons)
	if err == nil && len(lacking) > 0 {
		err = cli.Nearest("installation on this seed of add-on", lacking[0], known)
	}
	if err != nil {
		return err
	}
	var found []*v1.AddonInstallation
	var facts []string
	for _, one := range all {
		if owned := cli.CheckOwned(one, "removed"); owned != nil {
			facts = append(facts, fmt.Sprintf("unchanged in namespace %q: %v", one.Namespace, owned))
			continue
		}
		found = append(found, one)
	}
	return o.removeAll(ctx, seed, found, facts)
}

// removeAll shows facts and installations, asks, and deletes them.
func (o *options) removeAll(ctx context.Context, seed *cli.Platform, found []*v1.AddonInstallation, facts []string) error {
	for _, one := range found {
		facts = append(facts, o.fact(one))
	}
	if isNone, err := o.ask(ctx, facts, len(found), "installation"); isNone || err != nil {
		return err
	}
	for at, one := range found {
		if err := o.remove(ctx, seed, one); err != nil {
			return cli.Partly(fmt.Errorf("%q in namespace %q: %w", one.Name, one.Namespace, err), at, len(found))
		}
	}
	for _, one := range found {
		if err := o.wait.Gone(ctx, o.Tool, seed, one); err != nil {
			return err
		}
	}
	return nil
}

// ask shows facts, and asks if there is anything to remove.
func (o *options) ask(ctx context.Context, facts []string, count int, noun string) (isNone bool, err error) {
	if count > 0 {
		return false, o.consent.Ask(ctx, o.Tool, facts, "Remove "+text.Count(count, noun)+"?")
	}
	for _, fact := range facts {
		o.Note("%s", fact)
	}
	return true, nil
}

// sets deletes the AddonSets that enable the add-ons in these clusters.
func (o *disabling) sets(ctx context.Context, master *cli.Platform, namespace string) error {
	var found []*v1.AddonSet
	var facts []string
	for _, one := range o.clusters.Addons {
		set, exists, err := o.clusters.Set(ctx, master, namespace, one)
		if err != nil {
			return err
		}
		if !exists {
			facts = append(facts, fmt.Sprintf("unchanged: `enable` created no AddonSet for add-on %q with these flags", one.Addon))
			continue
		}
		selected := 0
		if set.Status.Counts != nil {
			selected = int(set.Status.Counts.Selected)
		}
		found = append(found, set)
		facts = append(facts, fmt.Sprintf("AddonSet %q in namespace %q, and its installations of add-on %q in %s (removal: %s)",
			set.Name, namespace, one.Addon, text.Count(selected, "cluster"), cmp.Or(set.Spec.Removal, v1.RemovalDelete)))
	}
	if isNone, err := o.ask(ctx, facts, len(found), "AddonSet"); isNone || err != nil {
		return err
	}
	for at, set := range found {
		if err := o.removeSet(ctx, master, set); err != nil {
			return cli.Partly(fmt.Errorf("AddonSet %q: %w", set.Name, err), at, len(found))
		}
	}
	return nil
}

// removeSet confirms the deletion of the set that was shown, and deletes no other of its name.
func (o *disabling) removeSet(ctx context.Context, master *cli.Platform, set *v1.AddonSet) error {
	shown := set.Generation
	confirmed := cli.Merging(map[string]any{"metadata": map[string]any{
		"uid": set.UID, "annotations": map[string]string{v1.AnnotationConfirmDeletion: set.Name}, // no patch may change the uid
	}})
	if err := master.Patch(ctx, set, confirmed, cli.FieldManager); err != nil {
		return cli.Changed(err)
	}
	if set.Generation != shown {
		return cli.Fail(cli.ExitFailed, "run the command again", "another client changed it in the meantime")
	}
	if err := master.Delete(ctx, set, client.Preconditions{UID: &set.UID}); client.IgnoreNotFound(err) != nil {
		return cli.Changed(err)
	}
	o.Done(set, "is being removed")
	return nil
}
