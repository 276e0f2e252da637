// Package migrate is the verb that makes installations of what KKP and Helm installed in a cluster. It only creates
// AddonInstallations, with annotation adopt: the manager then adopts the objects as they are. It changes and deletes
// nothing of the other tools (ADR 144).
package migrate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/cli"
	"github.com/trellis-addons/trellis/pkg/serve/view"
)

const example = `  # Show which add-ons would become installations, and which would not
  kubectl addons migrate --cluster 47s2ddlfgj --user-kubeconfig user.yaml

  # Print the same plan as YAML, for git
  kubectl addons migrate --cluster 47s2ddlfgj --user-kubeconfig user.yaml -o yaml

  # Create the installations, after a confirmation; chart kube-prometheus-stack is add-on monitoring
  kubectl addons migrate --cluster 47s2ddlfgj --user-kubeconfig user.yaml --map kube-prometheus-stack=monitoring --apply`

type options struct {
	*cli.Tool
	output  cli.Output
	consent cli.Consent
	user    string
	names   map[string]string
	apply   bool
}

// Command makes the command.
func Command(tool *cli.Tool) *cobra.Command {
	o := &options{Tool: tool}
	command := &cobra.Command{
		Use:   "migrate --cluster CLUSTER",
		Short: "Plan and create installations for add-ons that KKP, Helm or Flux installed in a cluster",
		Long: "Plan AddonInstallations for KKP's Addons and ApplicationInstallations and for Helm releases of a cluster, and create them with " +
			"--apply. They have annotation adopt: objects and releases are adopted as they are, and nothing is deleted or recreated.\n\n" +
			"Releases of Flux and of Cluster API's add-on provider for Helm are planned as YAML only. Without --user-kubeconfig only objects " +
			"of the seed are read. -o yaml prints the values, which may be secret.",
		Example: example, Args: cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		Annotations: cli.Needs("get addoncatalogues", "list addoninstallations", "create addoninstallations",
			"list addons.kubermatic.k8c.io", "list helmreleaseproxies.addons.cluster.x-k8s.io"),
		RunE: func(command *cobra.Command, _ []string) error { return o.run(command.Context()) },
	}
	tool.ClusterFlag(command)
	o.output.Flag(command)
	o.consent.Flag(command)
	flags := command.Flags()
	flags.StringVar(&o.user, "user-kubeconfig", "", "`FILE` with the kubeconfig of the user cluster, for its Helm releases and objects")
	flags.StringToStringVar(&o.names, "map", nil, "`NAME=ADDON`: add-on for a chart, Addon or application that has another name")
	flags.BoolVar(&o.apply, "apply", false, "create the installations")
	return command
}

func (o *options) run(ctx context.Context) error {
	if err := o.output.Check(); err != nil {
		return err
	}
	if o.apply {
		if !o.output.IsTable() {
			return cli.Fail(cli.ExitUsage, "leave out -o", "--apply shows the plan as a table")
		}
		if err := o.consent.Check(o.Tool); err != nil {
			return err
		}
	}
	seed, err := o.Seed(ctx)
	if err != nil {
		return err
	}
	plan := &plan{options: o, seed: seed}
	if err := plan.make(ctx); err != nil {
		return err
	}
	if err := o.Print(&o.output, plan.answer()); err != nil || !o.apply {
		return err
	}
	return plan.create(ctx)
}

// answer shows the plan: a table for people, and otherwise the installations.
func (p *plan) answer() cli.Answer {
	table, list := view.NewTable("FROM>", "ADDON", "VERSION?", "INSTALLATION", "PLAN", "WHY>"), []any{}
	answer := cli.Answer{}
	for _, one := range p.items {
		name := "-"
		if one.made != nil {
			name = one.made.Name
			list = append(list, cli.Content(one.made))
		}
		colour := view.Plain
		if one.outcome == notCarriedOver {
			colour = view.Red
		}
		cells := view.Of(one.from, cmp.Or(one.addon, "-"), cmp.Or(one.version, "-"), name, string(one.outcome), cmp.Or(one.why, "-"))
		cells[4].Colour = colour
		table.Add(cells...)
	}
	answer.Tables = []view.Table{table}
	answer.Object = &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "List", "items": list}}
	answer.Notes = append(p.notes, p.steps()...)
	if len(p.items) == 0 {
		answer.Notes = append(answer.Notes, "nothing to migrate was found")
	}
	return answer
}

// steps say what people do with the other tools, for each tool in the plan.
func (p *plan) steps() (notes []string) {
	has := func(by ...tool) bool {
		return slices.ContainsFunc(p.items, func(one *item) bool { return one.made != nil && slices.Contains(by, one.tool) })
	}
	if has(kkpAddon) {
		notes = append(notes, "KKP Addons: the installations wait ("+v1.ReasonKKPAddonExists+") until you pause the Cluster, remove finalizer "+
			"cleanup-manifests of each Addon, delete the Addon and unpause the Cluster; remove a default Addon from KKP's list too; an "+
			"installation of an add-on with another name than the Addon is paused: then run `kubectl addons resume`")
	}
	if has(application) {
		notes = append(notes, "ApplicationInstallations: the installations are paused; for each, pause the Cluster, remove finalizer "+
			"kubermatic.k8c.io/cleanup-application-installation in the user cluster, delete the ApplicationInstallation, unpause the Cluster, and "+
			"then run `kubectl addons resume`; an enforced or default ApplicationDefinition has to be changed first")
	}
	if has(flux, provider) {
		notes = append(notes, "YAML only: stop the other tool first, as the guide on moving describes; then apply the output of -o yaml")
	}
	return notes
}

// create asks, and creates the installations of the plan.
func (p *plan) create(ctx context.Context) error {
	var made []*item
	for _, one := range p.items {
		if one.outcome == create || one.outcome == createPaused {
			made = append(made, one)
		}
	}
	if len(made) == 0 {
		return nil
	}
	question := fmt.Sprintf("Create %s in cluster %q, which adopt what %s has?",
		text.Count(len(made), "installation"), p.of.LongName(), cmp.Or(p.readFrom, "the seed"))
	if err := p.consent.Ask(ctx, p.Tool, nil, question); err != nil {
		return err
	}
	for at, one := range made {
		if err := p.seed.Create(ctx, one.made, cli.FieldManager); err != nil {
			return cli.Partly(fmt.Errorf("%s: %w", one.from, err), at, len(made))
		}
		done := "created"
		if one.outcome == createPaused {
			done += ", paused"
		}
		p.Done(one.made, done)
	}
	return nil
}

// refused checks an installation by admission. Why is empty if it is accepted. An error is no answer of admission: a right is
// missing, or the API server can't be reached.
func (p *plan) refused(ctx context.Context, made *v1.AddonInstallation) (why string, err error) {
	refusal := p.seed.Create(ctx, made.DeepCopy(), cli.FieldManager, client.DryRunAll)
	if refusal == nil {
		return "", nil
	}
	var status apierrors.APIStatus
	if !errors.As(refusal, &status) {
		return "", refusal
	}
	return strings.Join(strings.Fields(text.Message(refusal.Error())), " "), nil
}
