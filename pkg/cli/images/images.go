// Package images is the verb that lists what installations run.
package images

import (
	"context"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/cli"
	"github.com/trellis-addons/trellis/pkg/cli/endpoint"
	"github.com/trellis-addons/trellis/pkg/serve/view"
)

const example = `  # Images, charts and repositories of all add-ons on a cluster
  kubectl addons images --cluster 47s2ddlfgj

  # The sources of all clusters, with the installations of each
  kubectl addons images -A -o wide`

// answer is that of the endpoint.
type answer struct {
	Contents []struct {
		Kind          string   `json:"kind"`
		Reference     string   `json:"reference"`
		Revision      string   `json:"revision,omitempty"`
		Digest        string   `json:"digest,omitempty"`
		Count         int      `json:"count"`
		Installations []string `json:"installations"`
	} `json:"contents"`
	Total     int  `json:"total"`
	Truncated bool `json:"truncated,omitempty"`
}

// Command makes the command.
func Command(tool *cli.Tool) *cobra.Command {
	everywhere := false
	command := &cobra.Command{
		Use: "images", Short: "List the images, charts and git repositories from which add-ons are installed, with their installations",
		Long: "List the sources of installed add-ons: images with manifests, charts and git repositories, with the digest of their files.\n" +
			"Container images of pods are not listed. The query endpoint answers only callers who may list the catalogue of the seed.",
		Example: example, Args: cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		Annotations: cli.Needs("list addoninstallations", "list addoncatalogues in the catalogue namespace",
			"get addoncatalogues with --cluster"),
	}
	tool.ClusterFlag(command)
	command.Flags().BoolVarP(&everywhere, "all-namespaces", "A", false, "list the sources of all clusters")
	command.MarkFlagsMutuallyExclusive("cluster", "all-namespaces")
	return tool.Reads(command, func(ctx context.Context, seed *cli.Platform, _ []string) (cli.Answer, error) {
		asked := endpoint.Question{
			Path: "api/v1/images", Query: url.Values{},
			Right: "list addoninstallations.kubermatic.k8c.io there, and addoncatalogues.kubermatic.k8c.io in the catalogue namespace",
		}
		if !everywhere {
			of, err := tool.Place(ctx, seed)
			if err != nil {
				return cli.Answer{}, err
			}
			set(asked.Query, "namespace", of.Namespace)
			if !of.IsKKP() {
				set(asked.Query, "cluster", of.Name)
			}
		}
		return ask(ctx, seed, asked)
	})
}

// set adds a parameter that has a value.
func set(to url.Values, name, value string) {
	if value != "" {
		to.Set(name, value)
	}
}

func ask(ctx context.Context, seed *cli.Platform, asked endpoint.Question) (cli.Answer, error) {
	at, err := endpoint.Find(ctx, seed)
	if err != nil {
		return cli.Answer{}, err
	}
	var found answer
	if err := at.Ask(ctx, asked, &found); err != nil {
		return cli.Answer{}, err
	}
	table, made := view.NewTable("KIND", "REFERENCE", "REVISION", "USES", "DIGEST*", "INSTALLATIONS*"), cli.Answer{}
	for _, one := range found.Contents {
		table.Add(view.Of(one.Kind, one.Reference, one.Revision, strconv.Itoa(one.Count), one.Digest, text.Names(one.Installations, 10))...)
		made.Names = append(made.Names, one.Reference)
	}
	made.Tables, made.Notes = []view.Table{table}, []string{text.Count(found.Total, "source")}
	if found.Truncated {
		made.Notes = append(made.Notes, "the list is not complete: name a namespace or a cluster")
	}
	made.Object, err = cli.Document("Images", found)
	return made, err
}
