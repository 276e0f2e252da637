package store_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/store"
	"github.com/trellis-addons/trellis/test/disk"
	"github.com/trellis-addons/trellis/test/expect"
)

// withSmall creates a store's folder with contents of a few bytes of owner small, and one of 1 MiB of owner large,
// whose name it returns.
func withSmall(t *testing.T, count int) (folder, large string) {
	t.Helper()
	folder, large = disk.TempDir(t), strings.Repeat("f", 64)
	contents := map[string]any{}
	add := func(name, owner string, size int) {
		expect.NoError(t, os.MkdirAll(filepath.Join(folder, "content", name), 0o700))
		contents["sha256:"+name] = map[string]any{"size": size, "used": time.Now(), "owner": owner}
	}
	for i := range count {
		add(fmt.Sprintf("%064x", i), "small", 1)
	}
	add(large, "large", 1<<20)
	content, err := json.Marshal(map[string]any{"format": 1, "salt": []byte(strings.Repeat("s", 32)), "contents": contents})
	expect.NoError(t, err)
	expect.NoError(t, os.WriteFile(filepath.Join(folder, "index.json"), content, 0o600))
	return folder, large
}

// TestSmallContentsAreBoundedInNumber fails when small contents fill the store without a limit on their number, or
// displace larger ones of an owner who has few: each is in the index and is checked when space is needed.
func TestSmallContentsAreBoundedInNumber(t *testing.T) {
	folder, large := withSmall(t, 8191)
	bubble(t, store.Options{Folder: folder}, &greedy{content: 1}, func(t *testing.T, opened *store.Store) {
		for i := range 30 {
			if _, err := settle(opened, of("small", i)); err != nil {
				t.Fatal(err)
			}
		}
		contents, err := os.ReadDir(filepath.Join(folder, "content"))
		if err != nil || len(contents) > 8192 {
			t.Errorf("there are %d contents: %v", len(contents), err)
		}
		if _, err := os.Stat(filepath.Join(folder, "content", large)); err != nil {
			t.Errorf("that of the owner with one content: %v", err)
		}
		if twice := opened.IndexContents(); twice > 0 {
			t.Errorf("%d contents are in memory twice", twice)
		}
	})
}

// TestTheIndexIsNotWrittenForEachContent fails when the index is written for each content: one write has all of them.
func TestTheIndexIsNotWrittenForEachContent(t *testing.T) {
	options := store.Options{Folder: disk.TempDir(t)}
	bubble(t, options, &greedy{content: 1}, func(t *testing.T, opened *store.Store) {
		began, seen := time.Now(), map[string]bool{}
		for i := range 60 { // 100 ms each
			if _, err := settle(opened, of("small", i)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if info, err := os.Stat(filepath.Join(options.Folder, "index.json")); err == nil {
				seen[fmt.Sprint(info.Sys().(*syscall.Stat_t).Ino, info.ModTime())] = true
			}
		}
		if most := 1 + int(time.Since(began)/(5*time.Second)); len(seen) == 0 || len(seen) > most {
			t.Errorf("the index was written %d times for 60 contents, want once to %d times", len(seen), most)
		}
	})
}

// TestContentThatCannotBeMovedStays fails when content that can't be moved is removed in place: equal content that is
// stored meanwhile would lose files.
func TestContentThatCannotBeMovedStays(t *testing.T) {
	folder, _ := withSmall(t, 8100)
	bubble(t, store.Options{Folder: folder}, &greedy{content: 1}, func(t *testing.T, opened *store.Store) {
		expect.NoError(t, os.MkdirAll(filepath.Join(folder, "work", "gone-1", "in-the-way"), 0o700))
		for i := range 100 { // more than there is space for
			if _, err := settle(opened, of("small", i)); err != nil {
				t.Fatal(err)
			}
		}
		contents, err := os.ReadDir(filepath.Join(folder, "content"))
		if err != nil || len(contents) >= 8200 {
			t.Fatalf("nothing was removed: %d contents, %v", len(contents), err)
		}
		first := filepath.Join(folder, "content", strings.Repeat("0", 64))
		if _, err := os.Stat(first); err != nil {
			t.Errorf("the first content: %v", err)
		}
	})
}

// TestWhoAsksWaitsForNoWorkOnTheDisk fails when requests for content wait while the index is written, files are
// removed or readers are searched.
func TestWhoAsksWaitsForNoWorkOnTheDisk(t *testing.T) {
	folder, _ := withSmall(t, 1000)
	bubble(t, store.Options{Folder: folder, MaxBytes: 30 * chunk}, &greedy{content: 4}, func(t *testing.T, opened *store.Store) {
		looked, removed := 0, 0
		check := func(what string) {
			if opened.IsLocked() {
				t.Errorf("who asks waits while %s", what)
			}
		}
		opened.SetCollect(func() time.Duration {
			check("readers are looked for")
			looked++
			runtime.GC()
			return 0
		})
		opened.SetRemove(func(path string, product func(string) error) error {
			check("files are removed")
			removed++
			return product(path)
		})
		for i := range 12 {
			if _, err := settle(opened, of("a", i)); err != nil {
				t.Fatal(err)
			}
		}
		if looked == 0 || removed == 0 {
			t.Errorf("readers were looked for %d times, and %d contents removed", looked, removed)
		}
		pipe, closed := filepath.Join(folder, "work", "index.json"), make(chan error)
		expect.NoError(t, syscall.Mkfifo(pipe, 0o600))
		go func() { closed <- opened.Close() }()
		reader, err := os.Open(pipe) // waits until the store writes
		expect.NoError(t, err)
		defer reader.Close()
		_, err = reader.Read(make([]byte, 1)) // the index does not fit in a pipe's buffer, so the write is not finished
		expect.NoError(t, err)
		check("the index is written")
		_, err = io.Copy(io.Discard, reader)
		expect.NoError(t, errors.Join(err, <-closed))
	})
}

// TestSpaceIsMadeForManyPiecesAtOnce fails when each piece of a fetch into a full store makes the store read and sort
// all contents.
func TestSpaceIsMadeForManyPiecesAtOnce(t *testing.T) {
	const pieces = 64
	folder, _ := withSmall(t, 8191)
	source := &greedy{content: pieces}
	bubble(t, store.Options{Folder: folder, MaxBytes: 64 << 20}, source, func(t *testing.T, opened *store.Store) {
		var removed atomic.Int64 // a job that still runs after the last piece may remove, too
		rounds := 0
		opened.SetRemove(func(path string, product func(string) error) error {
			removed.Add(1)
			return product(path)
		})
		source.steps = make(chan struct{})
		if _, err := opened.Get(of("one", 0), "x", nil); !errors.Is(err, fetch.ErrPending) {
			t.Fatal(err)
		}
		for range pieces {
			before := removed.Load()
			source.steps <- struct{}{}
			synctest.Wait()
			if removed.Load() > before {
				rounds++
			}
		}
		if _, err := settle(opened, of("one", 0)); err != nil || rounds == 0 || rounds > pieces/8 {
			t.Errorf("contents were removed for %d of %d pieces: %v", rounds, pieces, err)
		}
	})
}

// TestKnownRevisionsAreBounded fails when revisions of equal content fill the memory, or when each one after some
// thousands makes the store read all of them.
func TestKnownRevisionsAreBounded(t *testing.T) {
	bubble(t, store.Options{}, &greedy{content: 1}, func(t *testing.T, opened *store.Store) {
		first, err := settle(opened, of("a", 1))
		expect.NoError(t, err)
		opened.Know(store.DigestLimit, first.Digest)
		_, err = settle(opened, of("a", 2))
		expect.NoError(t, err)
		if known := opened.Know(0, ""); known > store.DigestLimit/2 {
			t.Errorf("%d revisions are known", known)
		}
	})
}
