// Package show is the verb that shows an add-on: its versions, in a cluster or in the catalogue of the seed, and one version's form.
package show

import (
	"cmp"
	"context"
	"slices"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/cli"
	"github.com/trellis-addons/trellis/pkg/serve/view"
)

const example = `  # The versions of an add-on in a cluster: which fit, which are installed
  kubectl addons show prometheus --cluster 47s2ddlfgj

  # A version and its form, from the catalogue of the seed
  kubectl addons show prometheus@2.0.0`

type options struct {
	*cli.Tool
	platform string
}

// Command makes the command.
func Command(tool *cli.Tool) *cobra.Command {
	o := &options{Tool: tool}
	command := &cobra.Command{
		Use:   "show ADDON[@VERSION]",
		Short: "Show an add-on: its versions, or one version with its form",
		Long: "Show an add-on. With --cluster: which versions fit the cluster, and which are installed there. Without: all versions in the\n" +
			"catalogue of the seed with their constraints, or one version with the fields of its form.",
		Example: example, Args: cobra.ExactArgs(1), ValidArgsFunction: tool.Completes(1, tool.AddonNames),
		Annotations: cli.Needs("get addoncatalogues with --cluster", "list addoninstallations with --cluster",
			"get addoncatalogues in the platform namespace without --cluster"),
	}
	tool.ClusterFlag(command)
	command.Flags().StringVar(&o.platform, "platform-namespace", "kubermatic", "namespace of the charts, with the catalogue of the seed")
	return tool.Reads(command, func(ctx context.Context, seed *cli.Platform, arguments []string) (cli.Answer, error) {
		demand, err := cli.ParseDemand(arguments[0])
		switch {
		case err != nil:
			return cli.Answer{}, err
		case !tool.NamesCluster():
			return o.ofSeed(ctx, seed, demand.Addon, demand.Version)
		case demand.Version != "":
			return cli.Answer{}, cli.Fail(cli.ExitUsage, "leave one out, or see `kubectl addons why`", "--cluster and a version exclude each other")
		}
		return o.ofCluster(ctx, seed, demand.Addon)
	})
}

func (o *options) ofCluster(ctx context.Context, seed *cli.Platform, addon string) (cli.Answer, error) {
	of, available, err := o.Cluster(ctx, seed)
	if err != nil {
		return cli.Answer{}, err
	}
	if known := view.Addons(available); !slices.Contains(known, addon) {
		return cli.Answer{}, cli.Nearest("add-on", addon, known)
	}
	var by v1.SupportedBy
	for _, one := range available.Spec.Addons {
		if string(one.Name) == addon {
			by = one.SupportedBy
		}
	}
	installations, err := seed.Installations(ctx, of)
	available.SetGroupVersionKind(v1.GroupVersion.WithKind("AddonCatalogue"))
	return cli.Answer{
		Tables: []view.Table{view.Fields("Supported by", string(by)), view.ShownIn(addon, available, installations)},
		Names:  []string{addon}, Object: available,
	}, err
}

func (o *options) ofSeed(ctx context.Context, seed *cli.Platform, addon, version string) (cli.Answer, error) {
	merged := &v1.AddonCatalogue{}
	err := seed.Get(ctx, client.ObjectKey{Namespace: o.platform, Name: addon}, merged)
	isMerged := merged.Labels[v1.LabelRole] == v1.RoleMerged && len(merged.Spec.Addons) == 1
	if apierrors.IsNotFound(err) || err == nil && !isMerged {
		return cli.Answer{}, o.unknown(ctx, seed, addon)
	} else if err != nil {
		return cli.Answer{}, err
	}
	entry, err := catalogue.NewEntry(merged)
	if err != nil {
		return cli.Answer{}, err
	}
	merged.SetGroupVersionKind(v1.GroupVersion.WithKind("AddonCatalogue"))
	shown := &entry.Addon
	about := view.Fields("Add-on", addon, "Name", shown.DisplayName, "Type", string(cmp.Or(entry.Type, v1.CatalogueCustom)),
		"Description", shown.Description, "Documentation", shown.DocumentationURL, "Target namespace", shown.TargetNamespace,
		"Supported by", string(shown.SupportedBy))
	answer := cli.Answer{Names: []string{addon}, Object: merged, Tables: []view.Table{about, view.Versions(shown)}}
	if version == "" {
		return answer, nil
	}
	detail, isKnown := entry.Detail(version)
	if !isKnown {
		known := cli.NamesOf(shown.Versions, func(one *v1.AddonVersion) string { return one.Version })
		return cli.Answer{}, cli.Nearest("version", addon+"@"+version, known)
	}
	named := *shown
	named.Versions = slices.DeleteFunc(slices.Clone(shown.Versions), func(one v1.AddonVersion) bool { return one.Version != detail.Version })
	answer.Tables = []view.Table{about, view.Versions(&named), view.Form(detail)}
	answer.Object, err = cli.Document("VersionDetail", detail)
	return answer, err
}

// unknown is the error for an add-on that the seed does not have.
func (o *options) unknown(ctx context.Context, seed *cli.Platform, addon string) error {
	var all v1.AddonCatalogueList
	err := seed.List(ctx, &all, client.InNamespace(o.platform), client.MatchingLabels{v1.LabelRole: v1.RoleMerged})
	if err != nil {
		return err
	}
	return cli.Nearest("add-on", addon, cli.NamesOf(all.Items, (*v1.AddonCatalogue).GetName))
}
