// Package diff is the verb that compares files of a catalogue with the catalogues of the master.
package diff

import (
	"context"

	"github.com/spf13/cobra"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/cli"
	"github.com/trellis-addons/trellis/pkg/serve/view"
)

// Example has calls for the help.
const Example = `  # The changes by a commit of this folder, for the catalogue in git that reads the folder
  kubectl addons catalogue diff ./catalogue --catalogue platform

  # The changes by kubectl apply of an AddonCatalogue
  kubectl addons catalogue diff catalogue.yaml`

type options struct {
	*cli.Tool
	format cli.Format
	name   string
}

// Command makes the command.
func Command(tool *cli.Tool) *cobra.Command {
	o := &options{Tool: tool}
	command := &cobra.Command{
		Use:   "diff FILE|FOLDER|-",
		Short: "Show what files of a catalogue would change on the master, and how many installations are affected",
		Long: "Show what the merged catalogues would lose, gain or change if a catalogue had exactly the add-ons of these files. For each\n" +
			"version that is removed or changed, it shows how many installations on each seed use the version, by the last count.\n" +
			"It changes nothing. Exit code 1: something differs.\n\n" +
			"The files are compared with the catalogue that --catalogue names, which may read its add-ons from git. The default is the\n" +
			"name of the AddonCatalogue in the files. The command needs the context of the master; --namespace is the platform\n" +
			"namespace (default kubermatic).",
		Example: Example, Args: cobra.ExactArgs(1),
		Annotations: cli.Needs("list addoncatalogues in the platform namespace of the master",
			"get configmaps in the platform namespace of the master"),
		RunE: func(command *cobra.Command, paths []string) error { return o.run(command.Context(), paths[0]) },
	}
	o.format.Flag(command)
	command.Flags().StringVar(&o.name, "catalogue", "",
		"name of the catalogue to compare with (default: the name of the AddonCatalogue in the files)")
	return command
}

func (o *options) run(ctx context.Context, path string) error {
	if err := o.format.Check(); err != nil {
		return err
	}
	content, err := o.Content(ctx, path)
	if err != nil {
		return cli.Invalid(err)
	}
	if o.name == "" {
		if len(content.Objects) != 1 || content.Objects[0].Name == "" {
			return cli.Fail(cli.ExitUsage, "name the catalogue with --catalogue", "the files have no AddonCatalogue, or several")
		}
		o.name = content.Objects[0].Name
	}
	master, namespace, err := o.Master(ctx)
	if err != nil {
		return err
	}
	now, err := read(ctx, master, namespace)
	if err != nil {
		return err
	}
	replaced := now.replacement(o.name, content, o.Now())
	if err := content.Check(ctx, replaced.kind()); err != nil {
		return cli.Invalid(err)
	}
	answer, err := now.compare(ctx, replaced)
	if err != nil {
		return err
	}
	return o.print(answer)
}

// answer is what differs.
type answer struct {
	Catalogue string            `json:"catalogue"`
	Changes   []view.Difference `json:"changes"`
	// Notes are texts about what is not known.
	Notes []string `json:"notes,omitempty"`
	// differs: the merge would change.
	differs bool
}

func (o *options) print(found *answer) error {
	if err := o.PrintReport(&o.format, view.Differences(found.Changes), view.Style{Width: o.Width, Colour: o.Colour}, found); err != nil {
		return err
	}
	if o.format.Is("table") {
		for _, note := range found.Notes {
			o.Note("%s", note)
		}
	}
	if found.differs {
		return cli.Fail(cli.ExitNo, "", "%s", counts(found.Changes))
	}
	if o.format.Is("table") {
		o.Note("catalogue %q: nothing differs", found.Catalogue)
	}
	return nil
}

// counts says how much differs.
func counts(all []view.Difference) string {
	used := 0
	for _, one := range all {
		for _, installations := range one.Seeds {
			used += installations
		}
	}
	return text.Count(len(all), "difference") + "; " + text.Count(used, "installation") + " " + text.Verb(used, "uses", "use") +
		" removed or changed versions"
}

// conflictTexts explain why offers are left out.
var conflictTexts = map[string]string{
	v1.ReasonDuplicate: "has this version too, and has precedence", v1.ReasonCoreReserved: "has type Core and reserves the name",
	v1.ReasonOwnedByOther: "owns the add-on",
}
