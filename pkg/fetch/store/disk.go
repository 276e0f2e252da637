package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"time"
	"weak"

	"github.com/trellis-addons/trellis/pkg/base/times"
	"github.com/trellis-addons/trellis/pkg/base/turns"
	"github.com/trellis-addons/trellis/pkg/fetch"
)

const (
	contentFolder = "content"
	workFolder    = "work"
)

type disk struct {
	folder         string
	decoding       turns.Turns
	limit, largest int64
	keeps          func(name string) bool

	mu       sync.Mutex
	contents map[string]*content // by digest
	// kept is the sum of counts of all content, held the size of all holds. Together they never exceed the limit.
	kept, held int64
	holds      []*hold       // of the running fetches, the oldest first
	freed      chan struct{} // is closed when a hold returns space
	nextLook   time.Time     // when to check next for readers that ended
	moved      int           // number of evicted contents
	index      *index
	late       *time.Timer // writes the index; nil if the index is complete

	writing sync.Mutex // is held while the index is written, instead of mu
	// These take long and run without mu, which all requests for content need.
	collect func() time.Duration
	remove  func(path string) error
	// removals are those that no caller waits for.
	removals sync.WaitGroup
}

type content struct {
	digest string
	size   int64
	used   time.Time
	owner  string
	root   weak.Pointer[os.Root] // opened at use; parts in snapshots are being read
}

// openDisk reads the index, empties the work folder, and removes content that is not in the index.
func openDisk(options Options) (*disk, error) {
	d := &disk{
		decoding: turns.Turns{Each: ownerDecoding}, folder: options.Folder, limit: options.MaxBytes, largest: largest, keeps: options.Keeps,
		contents: map[string]*content{}, freed: make(chan struct{}), collect: collect, remove: removeAll,
	}
	for _, folder := range []string{contentFolder, workFolder} {
		if err := os.MkdirAll(filepath.Join(d.folder, folder), 0o700); err != nil {
			return nil, err
		}
	}
	var err error
	if d.index, err = readIndex(filepath.Join(d.folder, indexFile), options.Kinds); err != nil {
		return nil, err
	}
	err = errors.Join(d.clean(workFolder, nil), d.clean(contentFolder, d.adopt))
	d.index.Contents = nil // they are in d.contents
	return d, errors.Join(err, d.discard(d.evict(time.Now(), d.limit, nil)))
}

func (d *disk) clean(folder string, keep func(name string) bool) error {
	entries, err := os.ReadDir(filepath.Join(d.folder, folder))
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if keep != nil && keep(entry.Name()) {
			continue
		}
		err = errors.Join(err, removeAll(filepath.Join(d.folder, folder, entry.Name())))
	}
	return err
}

// adopt uses the content of an earlier process, whose clock may have been ahead.
func (d *disk) adopt(name string) bool {
	known, ok := d.index.Contents["sha256:"+name]
	if ok {
		d.keep(&content{digest: "sha256:" + name, size: known.Size, used: times.Past(known.Used, time.Now()), owner: known.Owner})
	}
	return ok
}

var digestPattern = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

func (d *disk) path(digest string) string {
	return filepath.Join(d.folder, contentFolder, digest[len("sha256:"):])
}

func (d *disk) has(digest string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.contents[digest] != nil
}

// open returns the content as a file system without a way out.
func (d *disk) open(digest string, now time.Time) (fs.FS, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	found := d.contents[digest]
	if found == nil {
		return nil, false
	}
	root := found.root.Value()
	if root == nil {
		var err error
		if root, err = os.OpenRoot(d.path(digest)); err != nil {
			if gone, ok := d.takeOut(found); ok { // it is fetched again
				d.removals.Go(func() { _ = d.discard([]leaving{gone}) })
			}
			return nil, false
		}
		found.root = weak.Make(root)
	}
	found.used = now
	return root.FS(), true
}

// bring lets source fill a new folder, and stores it by its digest. Size is the size of its files.
func (d *disk) bring(ctx context.Context, owner string, source fetching) (digest string, size int64, err error) {
	hold := d.begin(owner)
	defer d.end(hold)
	if err := d.reserve(ctx, hold, 2*fetch.EntryCost); err != nil {
		return "", 0, err
	}
	work, err := os.MkdirTemp(filepath.Join(d.folder, workFolder), "")
	if err != nil {
		return "", 0, err
	}
	defer func() { err = errors.Join(err, removeAll(work)) }()
	fresh := filepath.Join(work, contentFolder)
	if err := os.Mkdir(fresh, 0o700); err != nil {
		return "", 0, err
	}
	if digest, err = source(d.space(ctx, hold), fresh); err != nil {
		return "", 0, err
	}
	if !digestPattern.MatchString(digest) {
		return "", 0, fmt.Errorf("digest %q is not a SHA-256", digest)
	}
	size, entries, err := seal(fresh)
	if err != nil {
		return "", 0, err
	}
	sealed := &content{size: size + (entries+1)*fetch.EntryCost, owner: owner}
	if err := d.reserve(ctx, hold, max(0, d.counts(sealed)-hold.used)); err != nil { // bytes that were not counted by the space
		return "", 0, err
	}
	return digest, size, d.store(digest, fresh, sealed, hold)
}

// fetching fills a folder within the context's space, and returns the digest of its content.
type fetching func(ctx context.Context, folder string) (digest string, err error)

// store moves a filled folder to its place, unless equal content exists.
func (d *disk) store(digest, fresh string, sealed *content, hold *hold) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	sealed.used = time.Now()
	if found := d.contents[digest]; found != nil {
		found.used = sealed.used
		return nil
	}
	if err := move(d.path(digest), fresh+"-former"); err != nil { // is removed with the work
		return err
	}
	if err := os.Rename(fresh, d.path(digest)); err != nil {
		return err
	}
	if err := os.Chmod(d.path(digest), 0o500); err != nil {
		return err
	}
	sealed.digest = digest
	d.keep(sealed)
	d.giveBack(hold, d.counts(sealed))
	d.writeLater()
	return nil
}

// move takes a sealed folder out of its place, if it is there.
func move(from, to string) error {
	err := os.Chmod(from, 0o700)
	if err == nil {
		err = os.Rename(from, to)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// full turns the error of a full disk into one that names it, and removes all unused content. The store's limit
// exceeds its disk, or other data filled the disk.
func (d *disk) full(err error, now time.Time) error {
	if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
		return err
	}
	d.collect()
	d.mu.Lock()
	gone := d.evict(now, 0, nil)
	d.mu.Unlock()
	_ = d.discard(gone) // the rest is tried again at the next one
	return &fetch.UnavailableError{Subject: "the content store", Err: errDiskFull}
}

// size is the space of the stored content on the disk, in bytes.
func (d *disk) size() (bytes int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, content := range d.contents {
		bytes += content.size
	}
	return bytes
}

// seal makes everything below the folder read-only, and returns its size and number. The folder itself
// is sealed after its renaming, which writes to it.
func seal(folder string) (size, entries int64, err error) {
	err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == folder {
			return err
		}
		entries++
		if entry.IsDir() {
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		size += info.Size()
		return os.Chmod(path, 0o400)
	})
	if err != nil {
		return 0, 0, err
	}
	return size, entries, chmodFolders(folder, 0o500)
}

// chmodFolders sets the mode of all folders below one, not of itself.
func chmodFolders(folder string, mode fs.FileMode) error {
	return filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == folder || !entry.IsDir() {
			return err
		}
		return os.Chmod(path, mode)
	})
}

func removeAll(path string) error {
	if err := os.Chmod(path, 0o700); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	if err := chmodFolders(path, 0o700); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.RemoveAll(path)
}
