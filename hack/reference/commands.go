package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/trellis-addons/trellis/cmd/wiring/verbs"
	"github.com/trellis-addons/trellis/pkg/cli"
)

// commandsPage is what --help of each verb of kubectl addons shows.
func commandsPage(string) (string, error) {
	page := begin("commands")
	root := cli.Command(cli.NewTool(genericiooptions.IOStreams{}), verbs.All()...)
	page.heading(root.CommandPath())
	page.flags(root.PersistentFlags())
	page.heading("Rights")
	page.paragraph("What each verb needs of its caller, on the API server of the context. Resources without a group are of group " +
		"`kubermatic.k8c.io`, or of the core (`configmaps`). Tests run the verbs that read with exactly these rights.")
	page.head("verb", "needs")
	if err := page.rights(root); err != nil {
		return "", err
	}
	page.verbs(root)
	return page.String(), nil
}

// rights adds a row for each runnable command below one. The error names a command that declares no rights.
func (d *document) rights(command *cobra.Command) error {
	for _, verb := range command.Commands() {
		declared, isDeclared := cli.Rights(verb)
		isUsed := verb.Runnable() && !verb.Hidden && len(verb.Commands()) == 0
		if isUsed && !isDeclared {
			return fmt.Errorf("%s declares no rights: give it annotations of cli.Needs", verb.CommandPath())
		}
		var texts []string
		for _, one := range declared {
			texts = append(texts, strings.TrimSpace(strings.Join(one.Verbs, ", ")+" "+code(one.Resource)+" "+one.When))
		}
		if isUsed {
			d.row(code(strings.TrimPrefix(verb.CommandPath(), "kubectl addons ")), cmp.Or(strings.Join(texts, "; "), "none: it calls no API server"))
		}
		if err := d.rights(verb); err != nil {
			return err
		}
	}
	return nil
}

// verbs adds the runnable commands below one.
func (d *document) verbs(command *cobra.Command) {
	for _, verb := range command.Commands() {
		if verb.Runnable() && !verb.Hidden {
			d.heading(verb.CommandPath())
			d.paragraph(plain(cmp.Or(verb.Long, verb.Short)))
			fmt.Fprintf(d, "```text\n%s\n```\n\n", verb.UseLine())
			d.flags(verb.LocalNonPersistentFlags())
			if verb.Example != "" {
				fmt.Fprintf(d, "\n```text\n%s\n```\n", strings.ReplaceAll(verb.Example, "\n  ", "\n")[len("  "):])
			}
		}
		d.verbs(verb)
	}
}

// flags adds a table of flags.
func (d *document) flags(set *pflag.FlagSet) {
	if !set.HasAvailableFlags() {
		return
	}
	d.head("flag", "takes", "default", "means")
	set.VisitAll(func(flag *pflag.Flag) {
		if flag.Hidden {
			return
		}
		takes, usage := pflag.UnquoteUsage(flag)
		name := code("--" + flag.Name)
		if flag.Shorthand != "" {
			name += ", " + code("-"+flag.Shorthand)
		}
		preset := flag.DefValue
		if preset == "[]" || preset == "false" {
			preset = ""
		}
		d.row(name, cmp.Or(takes, "true or false"), code(preset), plain(usage))
	})
}
