// Package checkout says what a checkout is called: version, commit and the commit's date. It looks
// at the commit alone, and at no clock.
package checkout

import (
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
)

// Stamp is what everything that is built from a checkout bears.
type Stamp struct {
	// Version is a semantic version without the leading v; of a changed checkout it ends in "-dirty".
	Version string
	// Commit is the full id, with the same end.
	Commit string
	// Date is the commit's, in UTC, or what SOURCE_DATE_EPOCH says.
	Date time.Time
}

const dirty = "-dirty"

// RFC3339 is the date as texts have it.
func (s Stamp) RFC3339() string { return s.Date.UTC().Format(time.RFC3339) }

// IsRelease says whether the version is one that people are to run.
func (s Stamp) IsRelease() bool {
	version, err := semver.StrictNewVersion(s.Version)
	return err == nil && version.Prerelease() == ""
}

// Read looks at the checkout in a folder. An empty version is the highest one among the tags of the
// commit, or one that is made of the commit's date and id. Epoch is environment variable
// SOURCE_DATE_EPOCH, in seconds since 1970; empty: the commit's date.
func Read(ctx context.Context, folder, version, epoch string) (Stamp, error) {
	commit, err := git(ctx, folder, "log", "-1", "--format=%H %ct")
	if err != nil {
		return Stamp{}, err
	}
	tags, err := git(ctx, folder, "tag", "--points-at", "HEAD")
	if err != nil {
		return Stamp{}, err
	}
	changes, err := git(ctx, folder, "status", "--porcelain")
	if err != nil {
		return Stamp{}, err
	}
	id, seconds, _ := strings.Cut(commit, " ")
	date, err := dateOf(cmp.Or(epoch, seconds))
	if err != nil {
		return Stamp{}, err
	}
	return name(Stamp{Version: version, Commit: id, Date: date}, strings.Fields(tags), changes != "")
}

// Unchanged holds that a checkout is still what it was when Read named it, with what Read was asked
// with: a build reads it for minutes, and what was edited meanwhile would bear the name of a commit
// that has it not.
func (s Stamp) Unchanged(ctx context.Context, folder, version, epoch string) error {
	now, err := Read(ctx, folder, version, epoch)
	if err != nil {
		return err
	}
	if now != s {
		return fmt.Errorf("the checkout was %s of commit %s, and is %s of %s now: what was built of it is not kept",
			s.Version, s.Commit, now.Version, now.Commit)
	}
	return nil
}

func dateOf(seconds string) (time.Time, error) {
	number, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH %q is no number of seconds: %w", seconds, err)
	}
	return time.Unix(number, 0).UTC(), nil
}

// name completes a stamp.
func name(stamp Stamp, tags []string, changed bool) (Stamp, error) {
	if changed {
		stamp.Commit += dirty
	}
	if stamp.Version == "" {
		stamp.Version = versionOf(stamp, tags)
	}
	stamp.Version = strings.TrimPrefix(stamp.Version, "v")
	parsed, err := semver.StrictNewVersion(stamp.Version)
	if err != nil {
		return Stamp{}, fmt.Errorf("version %q is no semantic version: %w", stamp.Version, err)
	}
	if parsed.Metadata() != "" {
		return Stamp{}, fmt.Errorf("version %q has build metadata, which no image's tag can have", stamp.Version)
	}
	if changed {
		stamp.Version += dirty
	}
	return stamp, nil
}

func versionOf(stamp Stamp, tags []string) string {
	var versions []*semver.Version
	for _, tag := range tags {
		if version, err := semver.StrictNewVersion(strings.TrimPrefix(tag, "v")); err == nil && version.Metadata() == "" {
			versions = append(versions, version)
		}
	}
	if len(versions) > 0 {
		return slices.MaxFunc(versions, (*semver.Version).Compare).String()
	}
	return fmt.Sprintf("0.0.0-%s-%.12s", stamp.Date.Format("20060102150405"), stamp.Commit)
}

func git(ctx context.Context, folder string, arguments ...string) (string, error) {
	output, err := exec.CommandContext(ctx, "git", append([]string{"-C", folder}, arguments...)...).Output()
	if err != nil {
		return "", fmt.Errorf("git %s in %q: %w", arguments[0], folder, err)
	}
	return strings.TrimSpace(string(output)), nil
}
