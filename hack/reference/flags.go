package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
)

// programs have flags, by what they run on.
var programs = []struct{ name, where string }{
	{"master-controller-manager", "On the master."}, {"seed-controller-manager", "On each seed."},
	{"trellis-web", "The web view, on any cluster."},
}

var (
	flagLine    = regexp.MustCompile(`^  -([a-z0-9-]+)(?: ([a-z]+))?(?:\t(.*))?$`)
	defaultText = regexp.MustCompile(`^(.*) \(default (.*)\)$`)
)

// flagsPage is what --help of each program tells.
func flagsPage(ctx context.Context, root string) (string, error) {
	page := begin("flags")
	for _, program := range programs {
		command := exec.CommandContext(ctx, "go", "run", "./cmd/"+program.name, "--help")
		command.Dir, command.Env = root, append(os.Environ(), "TMPDIR=/tmp") // which defaults of folders name
		output, err := command.Output()
		if err != nil {
			return "", fmt.Errorf("asking %s for its flags: %w", program.name, err)
		}
		page.heading(program.name)
		page.paragraph(program.where)
		page.head("flag", "takes", "default", "means")
		for _, one := range flagsOf(string(output)) {
			page.row(code("--"+one.name), one.takes, code(one.preset), plain(one.means))
		}
	}
	return page.String(), nil
}

type programFlag struct{ name, takes, preset, means string }

// flagsOf reads what package flag prints.
func flagsOf(help string) []programFlag {
	var found []programFlag
	for line := range strings.SplitSeq(help, "\n") {
		if parts := flagLine.FindStringSubmatch(line); parts != nil {
			found = append(found, programFlag{name: parts[1], takes: parts[2], means: parts[3]})
		} else if usage, is := strings.CutPrefix(line, "    \t"); is && len(found) > 0 {
			found[len(found)-1].means += " " + usage
		}
	}
	for i, one := range found {
		if parts := defaultText.FindStringSubmatch(one.means); parts != nil {
			found[i].means, found[i].preset = parts[1], strings.Trim(parts[2], `"`)
		}
		if one.takes == "" {
			found[i].takes = "true or false"
		}
		found[i].means = strings.TrimSpace(found[i].means)
	}
	return found
}
