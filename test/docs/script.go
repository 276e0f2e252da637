package docs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/trellis-addons/trellis/hack/docs/markdown"
)

// Kinds of blocks, which stand after their fence.
const (
	runs    = "sh"
	refused = "sh refused"
	shown   = "console"
)

// plain are the words after a fence of blocks that are no commands.
var plain = []string{"yaml", "json", "text", "go", "promql"}

// script is all that runs of a page. Before each block it prints the place, so that the last place of an output is that of a failure.
func script(name string, page *markdown.Page) string {
	var made strings.Builder
	made.WriteString("set -euo pipefail\n")
	for _, block := range page.Blocks {
		switch block.Info {
		case runs:
			fmt.Fprintf(&made, "printf '\\n--- %s:%d\\n'\n%s\n", name, block.Line, block.Text)
		case refused:
			fmt.Fprintf(&made, "printf '\\n--- %s:%d\\n'\nif %s\nthen echo 'this has to be refused, and was not'; exit 1; fi\n",
				name, block.Line, strings.TrimSpace(block.Text))
		}
	}
	return made.String()
}

// complaints are what is wrong with the blocks of a page.
func complaints(name string, page *markdown.Page) []string {
	var found []string
	for _, block := range page.Blocks {
		if why := complaint(block); why != "" {
			found = append(found, fmt.Sprintf("%s:%d: %s", name, block.Line, why))
		}
	}
	return found
}

func complaint(block markdown.Block) string {
	switch {
	case block.Indented:
		return "a block of code without a fence: nobody can tell whether it runs"
	case block.Info == refused && strings.Count(strings.TrimSpace(block.Text), "\n") > 0:
		return "more than one command in a block that has to be refused"
	case block.Info == shown && block.Comment == "":
		return "a block that does not run: say why in an HTML comment before it, or let it run"
	case block.Info == runs, block.Info == refused, block.Info == shown, slices.Contains(plain, block.Info):
		return ""
	}
	return fmt.Sprintf("a block with %q after its fence: use sh, sh refused, console, or one of %v", block.Info, plain)
}

// isCommand says whether a block runs.
func isCommand(block markdown.Block) bool { return block.Info == runs || block.Info == refused }
