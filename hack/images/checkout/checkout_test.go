package checkout

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const commit = "0123456789abcdef0123456789abcdef01234567"

// Red when a changed checkout passes for its commit, or when a lower tag names the release.
func TestACheckoutHasOneName(t *testing.T) {
	date := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, test := range []struct {
		why, version string
		tags         []string
		changed      bool
		want         Stamp
		says         string
	}{
		{why: "a tagged commit", tags: []string{"v1.9.0", "latest", "v1.10.0", "v1.10.0-rc.1"}, want: Stamp{Version: "1.10.0", Commit: commit}},
		{why: "no tag", want: Stamp{Version: "0.0.0-20260102030405-0123456789ab", Commit: commit}},
		{why: "a tagged commit with changes", tags: []string{"v1.0.0"}, changed: true, want: Stamp{Version: "1.0.0-dirty", Commit: commit + "-dirty"}},
		{why: "a version that was asked for", version: "v2.0.0-rc.1", tags: []string{"v1.0.0"}, want: Stamp{Version: "2.0.0-rc.1", Commit: commit}},
		{why: "a version for changes", version: "1.2.3", changed: true, want: Stamp{Version: "1.2.3-dirty", Commit: commit + "-dirty"}},
		{why: "no version", version: "latest", says: "no semantic version"},
		{why: "metadata", version: "1.0.0+a", says: "metadata"},
	} {
		got, err := name(Stamp{Version: test.version, Commit: commit, Date: date}, test.tags, test.changed)
		if test.says != "" {
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%s: got %v", test.why, err)
			}
			continue
		}
		test.want.Date = date
		if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", test.why, err, diff)
		}
	}
	for version, want := range map[string]bool{"1.0.0": true, "1.0.0-rc.1": false, "1.0.0-dirty": false} {
		if got := (Stamp{Version: version}).IsRelease(); got != want {
			t.Errorf("%s is a release: %t", version, got)
		}
	}
}

// Red when the date is another one than the commit's, or SOURCE_DATE_EPOCH is not heard.
func TestADateIsTheCommits(t *testing.T) {
	folder := t.TempDir()
	run := func(arguments ...string) {
		command := exec.CommandContext(t.Context(), "git", append([]string{"-C", folder, "-c", "user.name=a", "-c", "user.email=a@b"}, arguments...)...)
		command.Env = append(os.Environ(), "GIT_COMMITTER_DATE=2026-01-02T05:04:05+02:00", "GIT_CONFIG_GLOBAL=/dev/null")
		if output, err := command.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", arguments, err, output)
		}
	}
	run("init", "--quiet")
	run("commit", "--quiet", "--allow-empty", "-m", "One")
	got, err := Read(t.Context(), folder, "", "")
	if err != nil || got.RFC3339() != "2026-01-02T03:04:05Z" || !strings.HasPrefix(got.Version, "0.0.0-20260102030405-") {
		t.Errorf("got %+v, %v", got, err)
	}
	if err := os.WriteFile(filepath.Join(folder, "new"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err = Read(t.Context(), folder, "", "86400"); err != nil || got.RFC3339() != "1970-01-02T00:00:00Z" || !strings.HasSuffix(got.Version, "-dirty") {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := Read(t.Context(), folder, "", "today"); err == nil || !strings.Contains(err.Error(), "SOURCE_DATE_EPOCH") {
		t.Errorf("got %v", err)
	}
}
