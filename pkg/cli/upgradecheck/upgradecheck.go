// Package upgradecheck is the verb that shows what an upgrade of Kubernetes would do to the add-ons of a cluster.
package upgradecheck

import (
	"context"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/cli"
	"github.com/trellis-addons/trellis/pkg/cli/endpoint"
	"github.com/trellis-addons/trellis/pkg/install/resolution"
	"github.com/trellis-addons/trellis/pkg/serve/view"
)

const example = `  # What breaks if the cluster gets Kubernetes 1.37.2?
  kubectl addons upgrade-check --cluster 47s2ddlfgj --to 1.37.2`

// answer is that of the endpoint.
type answer struct {
	Namespace     string                      `json:"namespace"`
	Cluster       string                      `json:"cluster,omitempty"`
	KKPVersion    string                      `json:"kkpVersion"`
	From          string                      `json:"from"`
	To            string                      `json:"to"`
	Breaks        int                         `json:"breaks"`
	Installations []resolution.UpgradeFinding `json:"installations"`
}

// Command makes the command.
func Command(tool *cli.Tool) *cobra.Command {
	to := ""
	command := &cobra.Command{
		Use: "upgrade-check --to VERSION", Short: "Show which add-ons of a cluster an upgrade of Kubernetes would break",
		Long: "Show the effect of an upgrade of Kubernetes on each installation of a cluster: Keeps, Moves, Breaks or Unknown. Exit code 1:\n" +
			"an installation breaks. Nothing is changed.",
		Example: example, Args: cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		Annotations: cli.Needs("list addoninstallations", "list addoncatalogues", "get addoncatalogues with --cluster"),
	}
	tool.ClusterFlag(command)
	command.Flags().StringVar(&to, "to", "", "Kubernetes `VERSION` of the cluster after the upgrade, such as 1.37.2")
	_ = command.MarkFlagRequired("to")
	return tool.Reads(command, func(ctx context.Context, seed *cli.Platform, _ []string) (cli.Answer, error) {
		of, _, err := tool.Cluster(ctx, seed)
		if err != nil {
			return cli.Answer{}, err
		}
		at, err := endpoint.Find(ctx, seed)
		if err != nil {
			return cli.Answer{}, err
		}
		asked := endpoint.Question{
			Path: "api/v1/upgrade-check", Body: map[string]string{"namespace": of.Namespace, "k8sVersion": to},
			Right: fmt.Sprintf("list addoninstallations.kubermatic.k8c.io and addoncatalogues.kubermatic.k8c.io in namespace %q", of.Namespace),
		}
		if !of.IsKKP() {
			asked.Query = url.Values{"cluster": {of.Name}}
		}
		var found answer
		if err := at.Ask(ctx, asked, &found); err != nil {
			return cli.Answer{}, err
		}
		return shown(found)
	})
}

// shown is the answer for people and programs.
func shown(found answer) (made cli.Answer, err error) {
	table := view.NewTable("INSTALLATION", "ADDON?", "INSTALLED", "OUTCOME", "VERSION", "MESSAGE?>")
	for _, one := range found.Installations {
		cells := view.Of(one.Installation, one.Addon, version(one.Installed), string(one.Outcome), version(one.Version), message(one))
		switch one.Outcome {
		case resolution.OutcomeBreaks:
			cells[3].Colour = view.Red
		case resolution.OutcomeUnknown:
			cells[3].Colour = view.Yellow
		}
		table.Add(cells...)
		made.Names = append(made.Names, one.Installation)
	}
	made.Tables, made.IsNo = []view.Table{table}, found.Breaks > 0
	made.Notes = []string{fmt.Sprintf("from Kubernetes %s to %s: %d of %s would break",
		found.From, found.To, found.Breaks, text.Count(len(found.Installations), "installation"))}
	made.Object, err = cli.Document("UpgradeCheck", found)
	return made, err
}

func version(of *catalogue.VersionOrigin) string {
	if of == nil {
		return ""
	}
	return of.Version
}

// message says why an installation breaks, and which version would fit.
func message(of resolution.UpgradeFinding) string {
	switch {
	case of.Fitting == nil:
		return of.Message
	case of.FitsNow:
		return of.Message + "; version " + of.Fitting.Version + " fits before and after the upgrade"
	}
	return of.Message + "; version " + of.Fitting.Version + " fits after the upgrade"
}
