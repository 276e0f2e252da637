package store_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/fetchtest"
	"github.com/trellis-addons/trellis/pkg/fetch/helmrepo"
	"github.com/trellis-addons/trellis/pkg/fetch/store"
	"github.com/trellis-addons/trellis/test/disk"
)

// TestTryKeepsNothing fails when content of a try is stored, its digest or the error of the source or of look is
// lost, or a mirror is ignored.
func TestTryKeepsNothing(t *testing.T) {
	charts := fetchtest.ServeCharts(t)
	digest := charts.Add("web", "1.0.0", nil)
	folder := disk.TempDir(t)
	content, end := open(t, store.Options{Folder: folder, Mirrors: fetch.Mirrors{{From: "https://charts.example.com", To: charts.URL}}})
	reference := fetch.Reference{
		Location: helmrepo.Location{URL: "https://charts.example.com", Chart: "web", Version: "1.0.0"}, Credentials: fetch.Credentials{CA: charts.CA},
	}
	looked := false
	err := content.Try(t.Context(), reference, func(_ context.Context, content fetch.Snapshot) error {
		looked = content.Digest == digest && content.Revision == "1.0.0"
		_, err := fs.Stat(content.FS, "Chart.yaml")
		return err
	})
	if err != nil || !looked {
		t.Fatalf("looked %t: %v", looked, err)
	}
	wrong := errors.New("wrong")
	if err := content.Try(t.Context(), reference, func(context.Context, fetch.Snapshot) error { return wrong }); !errors.Is(err, wrong) {
		t.Errorf("what look says is lost: %v", err)
	}
	if err := content.Try(t.Context(), reference, func(context.Context, fetch.Snapshot) error { panic("a decoder") }); err == nil {
		t.Error("a panic is no error")
	}
	reference.Location = helmrepo.Location{URL: "https://charts.example.com", Chart: "wep", Version: "1.0.0"}
	if reason, ofSource := fetch.Reason(content.Try(t.Context(), reference, func(context.Context, fetch.Snapshot) error { return nil })); reason != "ArtifactNotFound" || !ofSource {
		t.Errorf("a missing chart is %s, of the source %t", reason, ofSource)
	}
	for _, below := range []string{"content", "work"} {
		if kept, err := os.ReadDir(filepath.Join(folder, below)); err != nil || len(kept) > 0 {
			t.Errorf("%s has %v: %v", below, kept, err)
		}
	}
	end()
	if content.Try(t.Context(), reference, nil) == nil {
		t.Error("a closed store tries")
	}
}
