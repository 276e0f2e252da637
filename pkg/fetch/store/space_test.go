package store_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/archive"
	"github.com/trellis-addons/trellis/pkg/fetch/fetchtest"
	"github.com/trellis-addons/trellis/pkg/fetch/git"
	"github.com/trellis-addons/trellis/pkg/fetch/helmrepo"
	"github.com/trellis-addons/trellis/pkg/fetch/image"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
	"github.com/trellis-addons/trellis/pkg/fetch/store"
	"github.com/trellis-addons/trellis/test/disk"
	"github.com/trellis-addons/trellis/test/expect"
)

const chunk = 64 << 10

// greedy is a hostile source: it sets the size and the speed of each of its contents.
type greedy struct {
	*git.Source
	download, content int // in chunks
	// past says that content is written without the space.
	past bool
	done atomic.Int64
	// steps let one fetch continue by a chunk; nil: all continue.
	steps chan struct{}
	// stuck is an owner whose fetches never continue; empty: none.
	stuck string
	// decode is called in the turn of each fetch, after all of its content was written; nil: nothing.
	decode func(owner string)
}

func (g *greedy) Resolve(_ context.Context, reference fetch.Reference) (fetch.Revision, error) {
	return fetch.Revision{Name: reference.Location.(git.Location).Remote}, nil
}

// Fetch writes like the real kinds.
func (g *greedy) Fetch(ctx context.Context, reference fetch.Reference, revision fetch.Revision, folder string) (string, error) {
	download, err := archive.Nameless(ctx, filepath.Dir(folder))
	if err != nil {
		return "", err
	}
	defer download.Close()
	if err := g.write(ctx, revision.Name, g.download, download); err != nil {
		return "", err
	}
	if g.decode != nil {
		end, err := fetch.SpaceOf(ctx).Turn(ctx)
		if err != nil {
			return "", err
		}
		defer end()
		g.decode(reference.Owner)
	}
	if g.past {
		ctx = fetch.WithSpace(ctx, fetch.Space{})
	}
	into, err := archive.OpenFolder(ctx, folder, archive.Limits{})
	if err != nil {
		return "", err
	}
	defer into.Close()
	err = into.Write("x", func(to io.Writer) error { return g.write(ctx, revision.Name, g.content, to) })
	if err == nil {
		g.done.Add(1)
	}
	return into.Digest(), err
}

func (g *greedy) write(ctx context.Context, what string, chunks int, to io.Writer) error {
	for range chunks {
		if g.stuck != "" && strings.Contains(what, g.stuck) {
			<-ctx.Done()
			return ctx.Err()
		}
		if g.steps != nil {
			select {
			case <-g.steps:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if _, err := to.Write(bytes.Repeat([]byte(what), chunk/len(what)+1)[:chunk]); err != nil {
			return err
		}
	}
	return nil
}

// onDisk is the space of a folder, in blocks, including files that are open and removed.
func onDisk(t *testing.T, folder string) (total int64) {
	t.Helper()
	const block = 4 << 10
	err := filepath.WalkDir(folder, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if entry.IsDir() {
			total += block
		} else if err == nil {
			total += (info.Size() + block - 1) / block * block
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	open, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range open {
		at, _ := os.Readlink(name)
		if info, err := os.Stat(name); err == nil && strings.HasPrefix(at, folder) && strings.HasSuffix(at, " (deleted)") && info.Mode().IsRegular() {
			total += info.Size()
		}
	}
	return total
}

// bubble creates a store of a source in a synctest bubble.
func bubble(t *testing.T, options store.Options, source *greedy, test func(t *testing.T, opened *store.Store)) {
	t.Helper()
	options.Folder = cmp.Or(options.Folder, disk.TempDir(t))
	network := outbound.New(outbound.Options{})
	t.Cleanup(network.Close)
	source.Source = git.New(network)
	options.Kinds = fetch.NewKinds(fetch.Serve(source))
	synctest.Test(t, func(t *testing.T) {
		opened, err := store.New(options)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := opened.Close(); err != nil {
				t.Error(err)
			}
		}()
		test(t, opened)
	})
}

// of is content of an owner, on a separate host.
func of(owner string, number int) fetch.Reference {
	return fetch.Reference{Location: git.Location{Remote: fmt.Sprintf("https://%s-%d.example.com/x", owner, number), Branch: "main"}, Owner: owner}
}

// settle calls Get until there is a result.
func settle(opened *store.Store, reference fetch.Reference) (fetch.Snapshot, error) {
	for {
		snapshot, err := opened.Get(reference, "x", nil)
		if !errors.Is(err, fetch.ErrPending) {
			return snapshot, err
		}
		synctest.Wait()
		<-time.After(100 * time.Millisecond) // of the bubble's time
	}
}

// kept are the references whose content needs no new fetch.
func kept(opened *store.Store, references ...fetch.Reference) (numbers []int) {
	for i, reference := range references {
		if _, err := opened.Get(reference, "", nil); err == nil {
			numbers = append(numbers, i)
		}
		synctest.Wait()
	}
	return numbers
}

// TestTheLimitHoldsAtEveryMoment: Stored, fetched, downloaded and tried content together never takes more of the disk
// than the limit. The test fails when a fetch, a download or a try is not counted, when several fetches wait for each
// other, or when the limit is exceeded for a moment.
func TestTheLimitHoldsAtEveryMoment(t *testing.T) {
	const limit, wanted = 40 * chunk, 14
	source := &greedy{download: 4, content: 8}
	options := store.Options{Folder: disk.TempDir(t), MaxBytes: limit}
	bubble(t, options, source, func(t *testing.T, opened *store.Store) {
		opened.SetLargest(13 * chunk)
		source.steps = make(chan struct{})
		tried, began := make(chan error, 3), time.Now()
		for i := range 3 {
			go func() {
				tried <- opened.Try(t.Context(), of("tried", i), func(context.Context, fetch.Snapshot) error { return nil })
			}()
		}
		for i := range wanted {
			if _, err := opened.Get(of("owner", i), "x", nil); !errors.Is(err, fetch.ErrPending) {
				t.Fatal(err)
			}
		}
		most := int64(0)
		for source.done.Load() < wanted+3 {
			if time.Since(began) > 5*time.Second {
				t.Fatalf("%d were fetched: the others wait for each other", source.done.Load())
			}
			select {
			case source.steps <- struct{}{}:
			case <-time.After(time.Second):
			}
			synctest.Wait()
			if most = max(most, onDisk(t, options.Folder)); most > limit {
				t.Fatalf("%d bytes are on disk, %d more than there may be", most, most-limit)
			}
		}
		for range 3 {
			if err := <-tried; err != nil {
				t.Error(err)
			}
		}
		if most < limit*3/4 {
			t.Errorf("at most %d bytes of %d are used", most, limit)
		}
	})
}

// TestContentThatIsReadStays fails when content is removed that is being read, when recent content stays although it
// is not being read, or when the error of a fetch without space has another reason, or blames its source.
func TestContentThatIsReadStays(t *testing.T) {
	source := &greedy{download: 1, content: 8}
	bubble(t, store.Options{MaxBytes: 30 * chunk}, source, func(t *testing.T, opened *store.Store) {
		first, err := settle(opened, of("a", 1))
		if err != nil {
			t.Fatal(err)
		}
		for i := 2; i < 6; i++ { // all of them within seconds
			if _, err := settle(opened, of("a", i)); err != nil {
				t.Fatalf("there is no space for %d beside one that is read: %v", i, err)
			}
		}
		second, err := settle(opened, of("a", 7))
		if err != nil {
			t.Fatal(err)
		}
		third, err := settle(opened, of("a", 8))
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		_, err = settle(opened, of("a", 9))
		if !errors.Is(err, fetch.ErrNoSpace) || !strings.Contains(err.Error(), "--store-limit") {
			t.Fatalf("beside three that are read: %v", err)
		}
		if took := time.Since(began); took < 5*time.Second || took > 15*time.Second {
			t.Errorf("it waited %s", took)
		}
		if _, ofSource := fetch.Reason(err); ofSource {
			t.Error("the source is at fault")
		}
		for i, snapshot := range []*fetch.Snapshot{&first, &second, &third} {
			if read, err := fs.ReadFile(snapshot.FS, "x"); err != nil || len(read) != 8*chunk {
				t.Errorf("%d has %d bytes: %v", i, len(read), err)
			}
		}
		first = fetch.Snapshot{}
		runtime.KeepAlive(&first)
		<-time.After(time.Minute) // it is tried again
		if _, err = settle(opened, of("a", 9)); err != nil {
			t.Errorf("once one is not read any more: %v", err)
		}
		runtime.KeepAlive(second)
		runtime.KeepAlive(third)
	})
}

// TestAWaitForSpaceEnds fails when content larger than the store waits for space, or a wait continues after the
// store's end.
func TestAWaitForSpaceEnds(t *testing.T) {
	source := &greedy{content: 31}
	bubble(t, store.Options{MaxBytes: 30 * chunk}, source, func(t *testing.T, opened *store.Store) {
		began := time.Now()
		if _, err := settle(opened, of("a", 1)); !errors.Is(err, fetch.ErrNoSpace) {
			t.Errorf("got %v", err)
		}
		source.content = 20
		read, err := settle(opened, of("a", 2))
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("it waited %s", took)
		}
		began = time.Now()
		_, _ = opened.Get(of("a", 3), "x", nil)
		synctest.Wait()
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("the end waited %s", took)
		}
		runtime.KeepAlive(read)
	})
}

// TestTheOwnerWithMostGivesWay fails when the content of one owner displaces that of others, or when content that was
// not requested for an hour stays instead of content in use.
func TestTheOwnerWithMostGivesWay(t *testing.T) {
	source := &greedy{content: 4}
	bubble(t, store.Options{MaxBytes: 30 * chunk}, source, func(t *testing.T, opened *store.Store) {
		get := func(reference fetch.Reference) {
			t.Helper()
			if _, err := settle(opened, reference); err != nil {
				t.Fatal(err)
			}
			<-time.After(time.Second) // so that the store notices that it is no longer read
		}
		get(of("small", 0))
		get(of("small", 1))
		for i := range 20 {
			get(of("large", i))
		}
		fetches := opened.Stats().Fetches
		get(of("small", 0))
		get(of("small", 1))
		if again := opened.Stats().Fetches - fetches; again != 0 {
			t.Errorf("%d contents of the small owner were displaced", again)
		}
		<-time.After(3 * time.Hour)
		if again := opened.Stats().Fetches - fetches; again != 0 {
			t.Errorf("%d contents that had to go came back, though nobody asked", again)
		}
		for i := range 7 {
			get(of("new", i))
		}
		if left := kept(opened, of("new", 0), of("new", 1), of("new", 2), of("new", 3), of("new", 4), of("new", 5), of("new", 6)); len(left) < 6 {
			t.Errorf("of what is in use %v are kept, and what is not used stays", left)
		}
	})
}

// TestWhatWasNotReservedIsCounted fails when content that was not reserved is stored.
func TestWhatWasNotReservedIsCounted(t *testing.T) {
	source := &greedy{content: 31, past: true}
	options := store.Options{Folder: disk.TempDir(t), MaxBytes: 30 * chunk}
	bubble(t, options, source, func(t *testing.T, opened *store.Store) {
		if _, err := settle(opened, of("a", 1)); !errors.Is(err, fetch.ErrNoSpace) {
			t.Errorf("got %v", err)
		}
	})
	if taken := onDisk(t, options.Folder); taken > chunk {
		t.Errorf("%d bytes stay on disk", taken)
	}
}

// TestTimesInTheFutureAreNow fails when content with a future time of use stays before all that is used now.
func TestTimesInTheFutureAreNow(t *testing.T) {
	source := &greedy{content: 4}
	options := store.Options{Folder: disk.TempDir(t), MaxBytes: 15 * chunk}
	bubble(t, options, source, func(t *testing.T, opened *store.Store) {
		<-time.After(30 * 24 * time.Hour) // the clock is ahead
		if _, err := settle(opened, of("a", 1)); err != nil {
			t.Fatal(err)
		}
	})
	ahead, err := os.ReadDir(filepath.Join(options.Folder, "content"))
	if err != nil || len(ahead) != 1 {
		t.Fatal(ahead, err)
	}
	bubble(t, options, source, func(t *testing.T, opened *store.Store) {
		for i := 2; i < 5; i++ {
			<-time.After(time.Second)
			if _, err := settle(opened, of("a", i)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := os.Stat(filepath.Join(options.Folder, "content", ahead[0].Name())); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("what was used in the future stays: %v", err)
		}
	})
}

// TestSourcesReserveWhatTheyWrite fails when a kind of source writes bytes that it did not reserve, or does not
// return the space of its downloads.
func TestSourcesReserveWhatTheyWrite(t *testing.T) {
	repositories, charts, registry := fetchtest.ServeGit(t), fetchtest.ServeCharts(t), fetchtest.ServeRegistry(t)
	repository := repositories.Repository(t, "addons")
	repository.Commit("main", map[string]string{"a/x.yaml": strings.Repeat("x", 1000), "a/b/y.yaml": "y"})
	charts.Add("web", "1.0.0", nil)
	registry.Image("image", "v1", fetchtest.Chart("web", "1.0.0", nil))
	registry.Chart("charts/web", "1.0.0", fetchtest.Chart("web", "1.0.0", nil))
	network := outbound.New(outbound.Options{AllowCIDRs: fetchtest.Loopback})
	t.Cleanup(network.Close)
	kinds := fetch.NewKinds(fetch.Serve(git.New(network)), fetch.Serve(helmrepo.New(network)), fetch.Serve(image.New(network)))
	trusted := fetch.Credentials{CA: slices.Concat(repositories.CA, charts.CA, registry.CA)}
	for name, location := range map[string]fetch.Location{
		"git":   git.Location{Remote: repository.URL, Branch: "main"},
		"helm":  helmrepo.Location{URL: charts.URL, Chart: "web", Version: "1.0.0"},
		"image": image.Location{Image: image.Name(registry.Host + "/image:v1")},
		"oci":   helmrepo.Location{URL: "oci://" + registry.Host + "/charts", Chart: "web", Version: "1.0.0"},
	} {
		reference := fetch.Reference{Location: location, Credentials: trusted}
		source, err := kinds.Source(reference)
		if err != nil {
			t.Fatal(err)
		}
		revision, err := source.Resolve(t.Context(), reference)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		folder, reserved, most := filepath.Join(t.TempDir(), "content"), int64(0), int64(0)
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		ctx := fetch.WithSpace(t.Context(), fetch.Space{Reserve: func(bytes int64) error {
			if missing := onDisk(t, filepath.Dir(folder)) - 2*4<<10 - reserved; missing > 0 {
				t.Errorf("%s: %d bytes are on disk that were not reserved", name, missing)
			}
			reserved += bytes
			most = max(most, reserved)
			return nil
		}})
		if _, err := source.Fetch(ctx, reference, revision, folder); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		files, entries := int64(0), int64(-1)
		_ = filepath.WalkDir(folder, func(_ string, entry fs.DirEntry, _ error) error {
			if info, err := entry.Info(); err == nil && !entry.IsDir() {
				files += info.Size()
			}
			entries++
			return nil
		})
		if want := files + entries*fetch.EntryCost; reserved != want {
			t.Errorf("%s: %d bytes stay reserved, want %d", name, reserved, want)
		}
		if most == reserved {
			t.Errorf("%s: its download was not reserved", name)
		}
		wrong := errors.New("no space")
		full := fetch.WithSpace(t.Context(), fetch.Space{Reserve: func(int64) error { return &fetch.UnavailableError{Subject: "s", Err: wrong} }})
		if _, err := source.Fetch(full, reference, revision, t.TempDir()); !errors.Is(err, wrong) {
			t.Errorf("%s: what the space says is lost: %v", name, err)
		}
	}
}

// TestOnlyFilesOfUseAreKept fails when an unused file takes space, or a used one is lost.
func TestOnlyFilesOfUseAreKept(t *testing.T) {
	server := fetchtest.ServeGit(t)
	repository := server.Repository(t, "addons")
	repository.Commit("main", map[string]string{
		"a/x.yaml": "x", "a/large.bin": strings.Repeat("x", 100_000), "docs/README.md": "r", "y.yaml": "y",
	})
	folder := disk.TempDir(t)
	opened, _ := open(t, store.Options{Folder: folder, Keeps: func(name string) bool { return filepath.Ext(name) == ".yaml" }})
	snapshot, err := await(t, opened, gitReference(server, repository))
	if err != nil || content(t, snapshot, "a/x.yaml") != "x" || content(t, snapshot, "y.yaml") != "y" {
		t.Fatalf("got %v", err)
	}
	var names []string
	err = fs.WalkDir(snapshot.FS, ".", func(name string, _ fs.DirEntry, err error) error {
		names = append(names, name)
		return err
	})
	if err != nil || !slices.Equal(names, []string{".", "a", "a/x.yaml", "y.yaml"}) {
		t.Errorf("kept are %v: %v", names, err)
	}
}

// TestContentThatCannotBeOpenedIsRemoved fails when content that can't be opened stays on the disk until it is
// fetched again, and is not counted.
func TestContentThatCannotBeOpenedIsRemoved(t *testing.T) {
	options := store.Options{Folder: disk.TempDir(t)}
	reference, source := of("a", 1), &greedy{content: 1}
	var at string
	bubble(t, options, source, func(t *testing.T, opened *store.Store) {
		first, err := settle(opened, reference)
		expect.NoError(t, err)
		at = filepath.Join(options.Folder, "content", strings.TrimPrefix(first.Digest, "sha256:"))
	})
	expect.NoError(t, os.Chmod(at, 0o700))
	expect.NoError(t, os.Rename(at, filepath.Join(options.Folder, "aside")))
	expect.NoError(t, os.WriteFile(at, []byte("x"), 0o600))
	source.stuck = "a-1"
	bubble(t, options, source, func(t *testing.T, opened *store.Store) {
		if _, err := opened.Get(reference, "x", nil); !errors.Is(err, fetch.ErrPending) {
			t.Errorf("got %v", err)
		}
		synctest.Wait()
		if _, err := os.Lstat(at); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("it is there: %v", err)
		}
	})
	for _, folder := range []string{"content", "work"} {
		left, err := os.ReadDir(filepath.Join(options.Folder, folder))
		if err != nil || len(left) > 0 {
			t.Errorf("folder %s has %v: %v", folder, left, err)
		}
	}
}
