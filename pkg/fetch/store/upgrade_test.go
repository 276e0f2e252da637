package store_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/git"
	"github.com/trellis-addons/trellis/pkg/fetch/helmrepo"
	"github.com/trellis-addons/trellis/pkg/fetch/image"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
	"github.com/trellis-addons/trellis/pkg/fetch/store"
	"github.com/trellis-addons/trellis/test/disk"
)

// earlier is a folder from the release before each kind of source had a package: one content, and three references
// that name it.
func earlier(t *testing.T) string {
	t.Helper()
	folder, digest := disk.TempDir(t), strings.Repeat("a", 64)
	if err := os.MkdirAll(filepath.Join(folder, "content", digest), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "content", digest, "x"), []byte("kept"), 0o400); err != nil {
		t.Fatal(err)
	}
	records, now := map[string]any{}, time.Now()
	for _, name := range []string{
		"db68bfac9dc3e56b69126b49711a8b23065a197c815ee23ed53979365e12f0d0",
		"583e29ea76f4b24d9fbc716ba99a5c0cd6d35d76872a4681c2df3945054c4934",
		"495f2f6c7e3e35125633d6e812a111e9322d8d68be03da867299d9a745beb109",
	} {
		records[name] = map[string]any{"revision": "r", "digest": "sha256:" + digest, "looked": now}
	}
	content, err := json.Marshal(map[string]any{
		"format": 1, "salt": []byte(strings.Repeat("s", 32)), "records": records,
		"contents": map[string]any{"sha256:" + digest: map[string]any{"size": 4, "used": now}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "index.json"), content, 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}

// TestWhatAnEarlierReleaseFetchedIsHandedOut fails when the names of records change: an upgrade would fetch
// everything again.
func TestWhatAnEarlierReleaseFetchedIsHandedOut(t *testing.T) {
	network := outbound.New(outbound.Options{})
	t.Cleanup(network.Close)
	opened, err := store.New(store.Options{Folder: earlier(t), Kinds: fetch.NewKinds(
		fetch.Serve(git.New(network)), fetch.Serve(image.New(network)), fetch.Serve(helmrepo.New(network)),
	)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { opened.Close() })
	login := fetch.Credentials{Username: "u", Password: "p", CA: []byte("c"), Hosts: []string{"r.example.com"}}
	for why, reference := range map[string]fetch.Reference{
		"git":   {Location: git.Location{Remote: "https://git.example.com/a.git", Branch: "main", Path: "addon"}},
		"image": {Location: image.Location{Image: "r.example.com/a:v1", Path: "addon"}, Credentials: login},
		"helm": {
			Location:    helmrepo.Location{URL: "oci://r.example.com/charts", Chart: "web", Version: "1.0.0"},
			Credentials: login,
		},
	} {
		snapshot, err := await(t, opened, reference)
		if err != nil || content(t, snapshot, "x") != "kept" || snapshot.Revision != "r" {
			t.Errorf("%s: got %v", why, err)
		}
	}
	if stats := opened.Stats(); stats.Resolutions != 0 || stats.Fetches != 0 {
		t.Errorf("stats: %+v", stats)
	}
}
