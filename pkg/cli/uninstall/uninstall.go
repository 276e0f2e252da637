// Package uninstall is the verb that removes installations.
package uninstall

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/cli"
)

const example = `  # Remove an add-on and its objects, after a confirmation
  kubectl addons uninstall prometheus --cluster 47s2ddlfgj

  # Remove an installation, and leave its objects in the cluster
  kubectl addons uninstall prometheus --cluster 47s2ddlfgj --orphan --yes

  # Remove an add-on from all clusters of the seed, after a confirmation
  kubectl addons uninstall prometheus --all-clusters`

type options struct {
	*cli.Tool
	consent           cli.Consent
	wait              cli.Wait
	orphan, skipHooks bool
	allClusters       bool
}

// Command makes the command.
func Command(tool *cli.Tool) *cobra.Command {
	o := &options{Tool: tool}
	command := &cobra.Command{
		Use:   "uninstall NAME...",
		Short: "Remove installations, with their objects in the cluster",
		Long: "Remove installations, with the objects that they applied to the cluster, unless --orphan leaves these there. " +
			"With --all-clusters, each NAME is an add-on; core installations and installations of sets stay.",
		Aliases: []string{"delete"}, Example: example, Args: cobra.MinimumNArgs(1),
		ValidArgsFunction: tool.Completes(0, tool.InstallationNames),
		Annotations: cli.Needs("get,delete addoninstallations", "patch addoninstallations with --orphan or --skip-hooks",
			"get addoncatalogues with --cluster", "list addoninstallations with --all-clusters", cli.WaitNeeds),
		RunE: func(command *cobra.Command, arguments []string) error { return o.run(command.Context(), arguments) },
	}
	tool.ClusterFlag(command)
	o.consent.Flag(command)
	o.wait.Flags(command, "they are gone")
	command.Flags().BoolVar(&o.orphan, "orphan", false, "leave all objects in the cluster, and run no hooks")
	command.Flags().BoolVar(&o.skipHooks, "skip-hooks", false, "do not run the hooks of the removal")
	command.Flags().BoolVar(&o.allClusters, "all-clusters", false, "remove all installations of the named add-ons on this seed")
	command.MarkFlagsMutuallyExclusive("cluster", "all-clusters")
	return command
}

func (o *options) run(ctx context.Context, names []string) error {
	if err := o.consent.Check(o.Tool); err != nil {
		return err
	}
	if err := o.wait.Check(); err != nil {
		return err
	}
	seed, err := o.Seed(ctx)
	if err != nil {
		return err
	}
	if o.allClusters {
		return o.everywhere(ctx, seed, names)
	}
	var found []*v1.AddonInstallation
	for _, name := range names {
		one, err := o.Named(ctx, seed, name)
		if err != nil {
			return err
		}
		if err := cli.CheckOwned(one, "removed"); err != nil {
			return err
		}
		found = append(found, one)
	}
	return o.removeAll(ctx, seed, found, nil)
}

// fact says what the removal of an installation removes.
func (o *options) fact(one *v1.AddonInstallation) string {
	removed := "nothing was applied"
	if one.Status.Objects != nil {
		removed = text.Count(int(one.Status.Objects.Total), "object")
	}
	if applied := one.Status.LastApplied; applied != nil && applied.VolumeClaims > 0 {
		removed += fmt.Sprintf(", with the data of %s", text.Count(int(applied.VolumeClaims), "PersistentVolumeClaim"))
	}
	if o.orphan || one.Spec.DeletionPolicy == v1.DeletionOrphan {
		removed += ", which stay in the cluster"
	}
	return fmt.Sprintf("AddonInstallation %q in namespace %q, of add-on %q: %s", one.Name, one.Namespace, one.Spec.AddonRef.Name, removed)
}

// remove deletes the installation that was read, and no other of its name. What changes the removal is one patch before.
func (o *options) remove(ctx context.Context, seed *cli.Platform, one *v1.AddonInstallation) error {
	uid := one.UID
	metadata := map[string]any{"uid": uid} // which no patch may change
	change := map[string]any{"metadata": metadata}
	if o.orphan {
		change["spec"] = map[string]any{"deletionPolicy": v1.DeletionOrphan}
	}
	if o.skipHooks {
		metadata["annotations"] = map[string]string{v1.AnnotationSkipHooks: "true"}
	}
	if o.orphan || o.skipHooks {
		if err := seed.Patch(ctx, one, cli.Merging(change), cli.FieldManager); err != nil {
			return cli.Changed(err)
		}
	}
	if err := seed.Delete(ctx, one, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
		return cli.Changed(err)
	}
	o.Done(one, "is being removed")
	return nil
}
