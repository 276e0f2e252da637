// Package images is the verb that lists what installations run.
package images

import (
	"context"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/cli"
	"github.com/trellis-addons/trellis/pkg/cli/endpoint"
	"github.com/trellis-addons/trellis/pkg/serve/view"
)

const example = `  # Images, charts and repositories of all add-ons on a cluster
  kubectl addons images --cluster 47s2ddlfgj

  # Those of all clusters, with the installations that use each
  kubectl addons images -A -o wide

  # What does a mirror lack?
  kubectl addons images -A --check registry.internal.example.com

  # Copy it, where docker.io and quay.io have a path each
  kubectl addons images -A --check docker.io=registry.internal.example.com/hub --check quay.io=registry.internal.example.com/quay \
    -o crane | sh`

// Formats of lists of copies.
const (
	formatCrane  = "crane"
	formatSkopeo = "skopeo"
)

// Command makes the verb. Open is for --check.
func Command(open Open) cli.Verb {
	return func(tool *cli.Tool) *cobra.Command { return command(tool, &check{open: open}) }
}

func command(tool *cli.Tool, asked *check) *cobra.Command {
	everywhere := false
	command := &cobra.Command{
		Use: "images", Short: "List the images, charts and repositories that installations run, with the installations that use each",
		Long: "List what installations run: the images of containers, and the add-on images, charts and git repositories that add-ons come\n" +
			"from. The query endpoint answers this to callers who may list the catalogue of the seed.\n\n" +
			"With --check, look for the images and charts in a mirror, by digest where it is known, else by tag. -o crane and -o skopeo print\n" +
			"commands that copy what is missing. Exit code 1: something is missing, or could not be looked for.",
		Example: example, Args: cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		Annotations: cli.Needs("list addoninstallations", "list addoncatalogues in the catalogue namespace",
			"get addoncatalogues with --cluster"),
	}
	tool.ClusterFlag(command)
	command.Flags().BoolVarP(&everywhere, "all-namespaces", "A", false, "list the sources of all clusters")
	command.MarkFlagsMutuallyExclusive("cluster", "all-namespaces")
	flags := command.Flags()
	flags.StringArrayVar(&asked.mirrors, "check", nil, "`MIRROR` of all registries, or REGISTRY=MIRROR; repeatable")
	flags.StringVar(&asked.config, "registry-config", "", "`FILE` with logins for the mirror, such as ~/.docker/config.json")
	flags.StringVar(&asked.authority, "registry-ca", "", "`FILE` with the certificate authority of the mirror, in PEM")
	return tool.Reads(command, func(ctx context.Context, seed *cli.Platform, _ []string) (cli.Answer, error) {
		if format := command.Flag("output").Value.String(); len(asked.mirrors) == 0 && (format == formatCrane || format == formatSkopeo) {
			return cli.Answer{}, cli.Fail(cli.ExitUsage, "add --check MIRROR", "-o %s prints what a mirror lacks", format)
		}
		question := endpoint.Question{
			Path: "api/v1/images", Query: url.Values{},
			Right: "list addoninstallations.kubermatic.k8c.io there, and addoncatalogues.kubermatic.k8c.io in the catalogue namespace",
		}
		if !everywhere {
			of, err := tool.Place(ctx, seed)
			if err != nil {
				return cli.Answer{}, err
			}
			set(question.Query, "namespace", of.Namespace)
			if !of.IsKKP() {
				set(question.Query, "cluster", of.Name)
			}
		}
		return ask(ctx, seed, question, asked)
	}, formatCrane, formatSkopeo)
}

// set adds a parameter that has a value.
func set(to url.Values, name, value string) {
	if value != "" {
		to.Set(name, value)
	}
}

func ask(ctx context.Context, seed *cli.Platform, question endpoint.Question, asked *check) (cli.Answer, error) {
	var found view.Contents
	err := endpoint.Ask(ctx, seed, question, &found)
	if err != nil {
		return cli.Answer{}, err
	}
	made := cli.Answer{Tables: []view.Table{found.Table()}, Notes: []string{text.Count(found.Total, "content")}}
	if len(asked.mirrors) > 0 {
		made, err = asked.run(ctx, &found)
	} else {
		made.Names = cli.NamesOf(found.Contents, func(one *view.Content) string { return one.Reference })
		made.Object, err = cli.Document("Images", found)
	}
	if found.Truncated {
		made.Notes = append(made.Notes, "the list is not complete: name a namespace or a cluster")
	}
	return made, err
}
