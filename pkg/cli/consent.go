package cli

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/trellis-addons/trellis/pkg/base/text"
)

// Consent is flag --yes: whether a verb may write without asking.
type Consent struct{ yes bool }

// Flag adds flag --yes to a command.
func (c *Consent) Flag(command *cobra.Command) {
	command.Flags().BoolVarP(&c.yes, "yes", "y", false, "do not ask; required without a terminal")
}

// Check refuses a call that is not confirmed and can't ask, before anything is read. Errors: ExitRefused.
func (c *Consent) Check(t *Tool) error {
	if c.yes || t.Asks {
		return nil
	}
	return Fail(ExitRefused, "add --yes", "nothing was changed, since there is no terminal to ask for a confirmation")
}

// Asks says whether the caller is asked before a verb writes.
func (c *Consent) Asks() bool { return !c.yes }

// Ask shows what a verb is going to do, a line for each fact, and asks, unless --yes is set. Errors: ExitRefused.
func (c *Consent) Ask(ctx context.Context, t *Tool, facts []string, question string) error {
	for _, fact := range facts {
		t.Note("%s", fact)
	}
	if c.yes {
		return nil
	}
	fmt.Fprint(t.ErrOut, text.Line(question)+" [y/N] ")
	answers := make(chan string, 1)
	go func() { // a read does not end with the context
		line, _ := bufio.NewReader(t.In).ReadString('\n')
		answers <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(t.ErrOut)
	case answer := <-answers:
		if answer == "y" || answer == "yes" {
			return nil
		}
	}
	return Fail(ExitRefused, "", "nothing was changed")
}
