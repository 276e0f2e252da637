package sandbox

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFlagsOfManagers(t *testing.T) {
	s := &Sandbox{Folder: t.TempDir()}
	if flags, err := s.flags(Master); err != nil || len(flags) > 0 {
		t.Errorf("without a file: %v, %v", flags, err)
	}
	text := "# for backups\nseed --provider-kinds=BackupTarget.storage.example.com --v 2\n\nmaster --v=4\nseed-2 --drift-interval=1m\n"
	if err := os.WriteFile(s.path("flags"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	const provider = "--provider-kinds=BackupTarget.storage.example.com"
	for cluster, want := range map[string][]string{
		Master: {"--v=4"}, "seed-1": {provider, "--v", "2"}, "seed-2": {provider, "--v", "2", "--drift-interval=1m"},
	} {
		flags, err := s.flags(cluster)
		if diff := cmp.Diff(want, flags); diff != "" || err != nil {
			t.Errorf("flags of %s (-want +got):\n%s%v", cluster, diff, err)
		}
	}
	if err := os.WriteFile(s.path("flags"), []byte("seed --v=1\nsed --v=2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.flags(Master); err == nil || !strings.Contains(err.Error(), `flags:2: "sed" is no manager`) {
		t.Errorf("a slip in a name gives %v", err)
	}
}

// Red where a sandbox with Cluster API has the managers of one without.
func TestFlagsOfManagersWithClusterAPI(t *testing.T) {
	s := &Sandbox{Folder: t.TempDir(), clusters: ClusterAPI}
	if err := os.WriteFile(s.path("flags"), []byte("seed --v=2\nmanagement --v=3\nmaster --v=4\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for cluster, want := range map[string][]string{Master: {"--v=4"}, Management: {"--v=2", "--v=3"}} {
		flags, err := s.flags(cluster)
		if diff := cmp.Diff(want, flags); diff != "" || err != nil {
			t.Errorf("flags of %s (-want +got):\n%s%v", cluster, diff, err)
		}
	}
}
