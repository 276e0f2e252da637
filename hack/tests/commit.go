package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// commit is what is checked out.
type commit struct {
	// hash is "" where there is no commit.
	hash string
	// isDirty says whether files differ from the commit.
	isDirty bool
}

// commitOf asks git. A folder without a history has no commit, and is tested all the same.
func commitOf(ctx context.Context, checkout string) commit {
	hash, err := git(ctx, checkout, "rev-parse", "HEAD")
	if err != nil {
		return commit{isDirty: true}
	}
	changes, err := git(ctx, checkout, "status", "--porcelain")
	return commit{hash: strings.TrimSpace(hash), isDirty: err != nil || changes != ""}
}

// rotation is the seed by which tests choose some of many places.
func (c commit) rotation() string {
	if len(c.hash) < 8 {
		return "00000000"
	}
	return c.hash[:8]
}

// String is how the commit is named in output.
func (c commit) String() string {
	name := c.hash[:min(12, len(c.hash))]
	switch {
	case c.hash == "":
		return "no commit"
	case c.isDirty:
		return name + " with changes"
	default:
		return name
	}
}

// base is the commit that changes are counted from: the one that is asked for, or else where this branch left main. A
// clone without origin has main alone, and one without main no more than HEAD.
func base(ctx context.Context, checkout, asked string) (string, error) {
	if asked != "" {
		hash, err := git(ctx, checkout, "rev-parse", "--verify", "--quiet", asked+"^{commit}")
		if err != nil {
			return "", fmt.Errorf("BASE=%q is no commit of this clone", asked)
		}
		return strings.TrimSpace(hash), nil
	}
	for _, branch := range []string{"origin/main", "main", "HEAD"} {
		if hash, err := git(ctx, checkout, "merge-base", "HEAD", branch); err == nil {
			return strings.TrimSpace(hash), nil
		}
	}
	return "", errors.New("there is no commit to compare with: is this a git clone?")
}

// changedSince are the files that differ from a commit, those that git does not know among them.
func changedSince(ctx context.Context, checkout, hash string) ([]string, error) {
	differing, err := git(ctx, checkout, "diff", "--name-only", "--no-renames", "-z", hash)
	if err != nil {
		return nil, err
	}
	unknown, err := git(ctx, checkout, "ls-files", "--others", "--exclude-standard", "-z")
	if err != nil {
		return nil, err
	}
	files := strings.FieldsFunc(differing+unknown, func(r rune) bool { return r == 0 })
	slices.Sort(files)
	return slices.Compact(files), nil
}

func git(ctx context.Context, checkout string, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, "git", arguments...)
	command.Dir = filepath.Clean(checkout)
	var complaints bytes.Buffer
	command.Stderr = &complaints
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", arguments[0], err, strings.TrimSpace(complaints.String()))
	}
	return string(output), nil
}
