package view

import (
	_ "embed"
	"regexp"
	"strings"
	"sync"
)

// reasons is the table of the page about AddonInstallations, which has a copy of it: condition, reason, meaning, what
// to do, in Markdown.
//
//go:embed reasons.txt
var reasons string

// Advice is what a reason means, and what to do; either may be empty.
type Advice struct{ Means, Do string }

// AdviceOn is the advice on a reason of a condition of an AddonInstallation. Ready has the reasons of other conditions too.
func AdviceOn(condition, reason string) Advice {
	all := advice()
	if found, ok := all[condition+"/"+reason]; ok {
		return found
	}
	return all[reason]
}

// link is a link of Markdown, whose text is kept.
var link = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

// advice reads the table, by condition/reason and by reason alone.
var advice = sync.OnceValue(func() map[string]Advice {
	found := map[string]Advice{}
	condition := ""
	for line := range strings.Lines(link.ReplaceAllString(reasons, "$1")) {
		cells := strings.Split(strings.ReplaceAll(line, `\|`, "\x00"), "|")
		for i, cell := range cells {
			cells[i] = strings.TrimSpace(strings.ReplaceAll(cell, "\x00", "|"))
		}
		if len(cells) < 6 || !strings.HasPrefix(cells[2], "`") {
			continue
		}
		if cells[1] != "" {
			condition = strings.Trim(cells[1], "`")
		}
		for reason := range strings.SplitSeq(cells[2], ", ") {
			reason = strings.Trim(reason, "`")
			one := Advice{Means: cells[3], Do: cells[4]}
			found[condition+"/"+reason] = one
			if _, isKnown := found[reason]; !isKnown {
				found[reason] = one
			}
		}
	}
	return found
})
