package install

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/cli"
)

const exampleEnable = `  # Two add-ons in two clusters of a seed
  kubectl addons enable --names prometheus,podinfo@6.x --clusters 47s2ddlfgj,c9k2x7wqlm

  # In every present and future cluster with a label, by an AddonSet on the master
  kubectl addons enable --names prometheus --selector env=prod --context master`

// enabling installs add-ons in several clusters.
type enabling struct {
	options
	clusters cli.Clusters
}

// Enable makes the command that installs add-ons in several clusters, with the flags of clusteradm.
func Enable(tool *cli.Tool) *cobra.Command {
	o := &enabling{options: options{Tool: tool}}
	command := &cobra.Command{
		Use:   "enable --names ADDONS {--clusters CLUSTERS | --selector LABELS | --all-clusters}",
		Short: "Install add-ons in several clusters",
		Long: "Install add-ons in several clusters. For at most 5 clusters of a seed it creates AddonInstallations, as `install` does. For " +
			"more clusters, for --selector and for --all-clusters it creates an AddonSet for each add-on, on the master.\n\n" +
			"It shows what it will create and asks; without a terminal, --yes is required. What is enabled already stays as it is.",
		Example: exampleEnable, Args: cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		Annotations: cli.Needs("get addoncatalogues", "list,create addoninstallations", "get,create addonsets with sets",
			"get configmaps with sets"),
		RunE: func(command *cobra.Command, _ []string) error { return o.run(command.Context()) },
	}
	o.clusters.Flags(command)
	o.consent.Flag(command)
	flags := command.Flags()
	flags.StringVar(&o.spec.TargetNamespace, "target-namespace", "", "namespace in the clusters; default: the catalogue's")
	flags.BoolVar(&o.spec.CreateNamespace, "create-namespace", false, "create the target namespace if a cluster lacks it")
	return command
}

func (o *enabling) run(ctx context.Context) error {
	if err := o.consent.Check(o.Tool); err != nil {
		return err
	}
	platform, sets, err := o.clusters.Connect(ctx, o.Tool)
	if err != nil {
		return err
	}
	var made []client.Object
	var facts []string
	for _, demand := range o.clusters.Addons {
		o.demand = demand
		added, shown, err := o.missing(ctx, platform, sets)
		if err != nil {
			return err
		}
		made, facts = append(made, added...), append(facts, shown...)
	}
	if len(made) == 0 {
		return nil
	}
	if err := o.consent.Ask(ctx, o.Tool, facts, "Create "+text.Count(len(made), "object")+"?"); err != nil {
		return err
	}
	for at, one := range made {
		if err := platform.Create(ctx, one, cli.FieldManager); err != nil {
			return cli.Partly(fmt.Errorf("%q in namespace %q: %w", one.GetName(), one.GetNamespace(), err), at, len(made))
		}
		o.Done(one, fmt.Sprintf("created in namespace %q", one.GetNamespace()))
	}
	return nil
}

// missing are the objects that enable the add-on and don't exist yet, each checked by admission, with what is shown of them.
func (o *enabling) missing(ctx context.Context, platform *cli.Platform, sets string) (made []client.Object, facts []string, err error) {
	if sets != "" {
		return o.missingSet(ctx, platform, sets)
	}
	for _, name := range o.clusters.Names {
		of, available, err := o.FindCluster(ctx, platform, name)
		if err != nil {
			return nil, nil, err
		}
		present, err := platform.Installations(ctx, of)
		if err != nil {
			return nil, nil, err
		}
		isOf := func(one v1.AddonInstallation) bool { return string(one.Spec.AddonRef.Name) == o.demand.Addon }
		if at := slices.IndexFunc(present, isOf); at >= 0 {
			o.Done(&present[at], fmt.Sprintf("unchanged: the add-on is enabled in cluster %q", of.LongName()))
			continue
		}
		version, err := cli.Choose(available, o.demand)
		if err != nil {
			return nil, nil, fmt.Errorf("cluster %q: %w", of.LongName(), err)
		}
		one := o.object(of, nil)
		if err := isFree(ctx, platform, one); err != nil {
			return nil, nil, err
		}
		if err := platform.Create(ctx, one.DeepCopy(), cli.FieldManager, client.DryRunAll); err != nil {
			return nil, nil, fmt.Errorf("cluster %q: %w", of.LongName(), err)
		}
		made, facts = append(made, one), append(facts, plan(one, of, version, nil)...)
	}
	return made, facts, nil
}

// missingSet is the AddonSet that enables the add-on; none if it exists.
func (o *enabling) missingSet(ctx context.Context, master *cli.Platform, namespace string) ([]client.Object, []string, error) {
	made, exists, err := o.clusters.Set(ctx, master, namespace, o.demand)
	if err != nil {
		return nil, nil, err
	}
	if exists {
		o.Done(made, "unchanged: it enables the add-on already; edit the set for another version or namespace")
		return nil, nil, nil
	}
	made.Spec.Addons[0].TargetNamespace, made.Spec.Addons[0].CreateNamespace = o.spec.TargetNamespace, o.spec.CreateNamespace
	if err := master.Create(ctx, made.DeepCopy(), cli.FieldManager, client.DryRunAll); err != nil {
		return nil, nil, err
	}
	return []client.Object{made}, []string{
		fmt.Sprintf("AddonSet %q in namespace %q, for all present and future clusters that it selects:", made.Name, made.Namespace),
		"  add-on:           " + o.demand.Addon,
		"  version:          " + cmp.Or(o.demand.Version, "the newest that fits each cluster"),
		"  clusters:         " + cmp.Or(metav1.FormatLabelSelector(made.Spec.ClusterSelector), "all"),
		"  target namespace: " + cmp.Or(o.spec.TargetNamespace, "the catalogue's"),
	}, nil
}
