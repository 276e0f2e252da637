// Package install is the verb that requests an add-on in a cluster.
package install

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/cli"
	"github.com/trellis-addons/trellis/pkg/cli/endpoint"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
)

const example = `  # Install the newest version that fits, after a confirmation
  kubectl addons install prometheus --cluster 47s2ddlfgj

  # Install the newest version of a range, with values, without a confirmation, and wait until it is Ready
  kubectl addons install prometheus@1.x --cluster 47s2ddlfgj --set replicas=2 --values prometheus.yaml --yes --wait

  # Print the object for git; nothing is written
  kubectl addons install prometheus@1.2.0 --cluster 47s2ddlfgj --dry-run=client -o yaml`

type options struct {
	*cli.Tool
	demand  cli.Demand
	given   cli.Given
	consent cli.Consent
	wait    cli.Wait
	output  cli.Output
	dryRun  string
	isLive  bool
	name    string
	spec    v1.AddonInstallationSpec
}

// Command makes the command.
func Command(tool *cli.Tool) *cobra.Command {
	o := &options{Tool: tool}
	command := &cobra.Command{
		Use:   "install ADDON[@VERSION|@RANGE]",
		Short: "Install an add-on in a cluster",
		Long: "Install an add-on in a cluster, after checks against the cluster's available catalogue and by admission.\n\n" +
			"It shows what it will create, with a preview of the objects, and asks; without a terminal, --yes is required.",
		Example: example, Args: cobra.ExactArgs(1), ValidArgsFunction: tool.Completes(1, tool.AddonNames),
		Annotations: cli.Needs("get addoncatalogues", "get,create addoninstallations", cli.WaitNeeds),
		RunE:        func(command *cobra.Command, arguments []string) error { return o.run(command.Context(), arguments[0]) },
	}
	tool.ClusterFlag(command)
	o.given.Flags(command)
	o.consent.Flag(command)
	o.wait.Flags(command, "it is Ready")
	o.output.ObjectFlag(command)
	endpoint.LiveFlag(command, &o.isLive)
	flags := command.Flags()
	flags.StringVar(&o.name, "name", "", "name of the installation; default: that of the add-on")
	flags.StringVar(&o.spec.TargetNamespace, "target-namespace", "", "namespace in the cluster; default: the catalogue's")
	flags.StringVar(&o.spec.ReleaseName, "release-name", "", "name of the Helm release; default: the catalogue's, or derived from the name")
	flags.BoolVar(&o.spec.CreateNamespace, "create-namespace", false, "create the target namespace if the cluster lacks it")
	flags.StringVar(&o.dryRun, "dry-run", "none", "none; client: print the object only; server: print it after admission")
	sides := cobra.FixedCompletions([]string{"none", "client", "server"}, cobra.ShellCompDirectiveNoFileComp)
	_ = command.RegisterFlagCompletionFunc("dry-run", sides)
	return command
}

func (o *options) run(ctx context.Context, argument string) error {
	if err := o.check(argument); err != nil {
		return err
	}
	given, err := o.given.Values(o.Tool, nil)
	if err != nil {
		return err
	}
	seed, err := o.Seed(ctx)
	if err != nil {
		return err
	}
	of, available, err := o.Cluster(ctx, seed)
	if err != nil {
		return err
	}
	version, err := cli.Choose(available, o.demand)
	if err != nil {
		return err
	}
	if err := cli.CheckForm(ctx, seed, cli.Demand{Addon: o.demand.Addon, Version: version}, given); err != nil {
		return err
	}
	made := o.object(of, given)
	if err := isFree(ctx, seed, made); err != nil {
		return err
	}
	switch o.dryRun {
	case "client":
		return o.PrintObject(&o.output, made)
	case "server":
		if err := seed.Create(ctx, made, cli.FieldManager, client.DryRunAll); err != nil {
			return err
		}
		return o.PrintObject(&o.output, made)
	}
	return o.create(ctx, seed, made, plan(made, of, version, given))
}

// check refuses a wrong call before anything is read.
func (o *options) check(argument string) (err error) {
	if o.demand, err = cli.ParseDemand(argument); err != nil {
		return err
	}
	if o.name != "" {
		if err := cli.CheckName("installation", o.name); err != nil {
			return err
		}
	}
	switch o.dryRun {
	case "client", "server":
		if o.output.IsTable() {
			return cli.Fail(cli.ExitUsage, "use yaml or json", "an object has no table")
		}
		return o.output.Check()
	case "none":
	default:
		return cli.Fail(cli.ExitUsage, "use none, client or server", "unknown --dry-run %q", o.dryRun)
	}
	if err := o.given.CheckInput(&o.consent); err != nil {
		return err
	}
	if err := o.consent.Check(o.Tool); err != nil {
		return err
	}
	return o.wait.Check()
}

// object is the installation that is created.
func (o *options) object(of target.Ref, given map[string]any) *v1.AddonInstallation {
	made := cli.NewInstallation(of, o.demand, o.name)
	made.Spec.TargetNamespace, made.Spec.CreateNamespace = o.spec.TargetNamespace, o.spec.CreateNamespace
	made.Spec.ReleaseName, made.Spec.Values = o.spec.ReleaseName, cli.RawValues(given)
	return made
}

// isFree refuses a name that an installation has.
func isFree(ctx context.Context, seed *cli.Platform, made *v1.AddonInstallation) error {
	var present v1.AddonInstallation
	err := seed.Get(ctx, client.ObjectKeyFromObject(made), &present)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	case present.Spec.AddonRef.Name == made.Spec.AddonRef.Name:
		return cli.Fail(cli.ExitRefused, "use `kubectl addons upgrade`, or add --name for another instance",
			"installation %q exists", present.Name)
	}
	return cli.Fail(cli.ExitRefused, "choose a name with --name",
		"installation %q exists, of add-on %q", present.Name, present.Spec.AddonRef.Name)
}

// create has admission check the object, shows it, asks, and writes it.
func (o *options) create(ctx context.Context, seed *cli.Platform, made *v1.AddonInstallation, facts []string) error {
	if err := seed.Create(ctx, made.DeepCopy(), cli.FieldManager, client.DryRunAll); err != nil {
		return err
	}
	if o.consent.Asks() {
		facts = append(facts, endpoint.Foresee(ctx, o.Tool, seed, made, o.isLive)...)
	}
	if err := o.consent.Ask(ctx, o.Tool, facts, "Create it?"); err != nil {
		return err
	}
	if err := seed.Create(ctx, made, cli.FieldManager); err != nil {
		return err
	}
	o.Done(made, "created")
	return o.wait.Ready(ctx, o.Tool, seed, made)
}

// plan are the lines that a caller confirms. A preview of the objects follows them.
func plan(made *v1.AddonInstallation, of target.Ref, version string, given map[string]any) []string {
	wanted := cmp.Or(made.Spec.AddonRef.Version, "the newest that fits")
	if version != "" && version != wanted {
		wanted = fmt.Sprintf("%s (%s)", version, wanted)
	}
	namespace := cmp.Or(made.Spec.TargetNamespace, "the catalogue's")
	if made.Spec.CreateNamespace {
		namespace += ", created if it is missing"
	}
	facts := []string{
		fmt.Sprintf("AddonInstallation %q in namespace %q:", made.Name, made.Namespace),
		"  add-on:           " + string(made.Spec.AddonRef.Name),
		"  version:          " + wanted,
		"  cluster:          " + of.LongName(),
		"  target namespace: " + namespace,
	}
	if paths, _ := cli.Paths(given); len(paths) > 0 {
		facts = append(facts, "  values:           "+strings.Join(paths, ", "))
	}
	return facts
}
