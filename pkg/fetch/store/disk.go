package store

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/trellis-addons/trellis/pkg/fetch"
)

const (
	contentFolder = "content"
	workFolder    = "work"
)

type disk struct {
	folder string
	limit  int64
	recent time.Duration

	mu       sync.Mutex
	contents map[string]*content // by digest
	index    *index
	late     *time.Timer // writes the index for what can wait
}

type content struct {
	size int64
	used time.Time
	root *os.Root // opened at first use; closed by the garbage collector
}

// openDisk reads the index, empties the work folder, and removes content that is not in the index.
func openDisk(options Options) (*disk, error) {
	d := &disk{folder: options.Folder, limit: options.MaxBytes, recent: options.Recent, contents: map[string]*content{}}
	for _, folder := range []string{contentFolder, workFolder} {
		if err := os.MkdirAll(filepath.Join(d.folder, folder), 0o700); err != nil {
			return nil, err
		}
	}
	var err error
	if d.index, err = readIndex(filepath.Join(d.folder, indexFile), options.Kinds); err != nil {
		return nil, err
	}
	return d, errors.Join(d.clean(workFolder, nil), d.clean(contentFolder, d.adopt))
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

// adopt uses the content of an earlier process.
func (d *disk) adopt(name string) bool {
	known, ok := d.index.Contents["sha256:"+name]
	if ok {
		d.contents["sha256:"+name] = &content{size: known.Size, used: known.Used}
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

// open returns the content as a file system that nothing leads out of.
func (d *disk) open(digest string, now time.Time) (fs.FS, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	found := d.contents[digest]
	if found == nil {
		return nil, false
	}
	if found.root == nil {
		root, err := os.OpenRoot(d.path(digest))
		if err != nil {
			delete(d.contents, digest) // removed from the disk; it is fetched again
			return nil, false
		}
		found.root = root
	}
	found.used = now
	return found.root.FS(), true
}

// bring lets fetch fill a new folder, and stores that by its digest.
func (d *disk) bring(fetch func(folder string) (string, error)) (digest string, size int64, err error) {
	work, err := os.MkdirTemp(filepath.Join(d.folder, workFolder), "")
	if err != nil {
		return "", 0, err
	}
	defer func() { err = errors.Join(err, removeAll(work)) }()
	fresh := filepath.Join(work, contentFolder)
	if err := os.Mkdir(fresh, 0o700); err != nil {
		return "", 0, err
	}
	if digest, err = fetch(fresh); err != nil {
		return "", 0, err
	}
	if !digestPattern.MatchString(digest) {
		return "", 0, fmt.Errorf("digest %q is no SHA-256", digest)
	}
	if size, err = seal(fresh); err != nil {
		return "", 0, err
	}
	return digest, size, d.store(digest, fresh, size)
}

// store moves a filled folder to its place, unless equal content exists.
func (d *disk) store(digest, fresh string, size int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	if found := d.contents[digest]; found != nil {
		found.used = now
		return nil
	}
	if err := removeAll(d.path(digest)); err != nil {
		return err
	}
	if err := os.Rename(fresh, d.path(digest)); err != nil {
		return err
	}
	if err := os.Chmod(d.path(digest), 0o500); err != nil {
		return err
	}
	d.contents[digest] = &content{size: size, used: now}
	return errors.Join(d.evict(now, d.limit), d.writeIndex())
}

// full turns a full disk into an error that says so, and removes all unused content. The store's
// limit exceeds its disk, or something else filled that.
func (d *disk) full(err error, now time.Time) error {
	if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	_ = d.evict(now, 0) // what stays is tried again at the next one
	return &fetch.UnavailableError{Subject: "the content store", Err: errNoSpace}
}

var errNoSpace = errors.New("no space left on its disk; give it a larger one, or a lower --store-limit")

func (d *disk) size() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	total := int64(0)
	for _, content := range d.contents {
		total += content.size
	}
	return total
}

// evict removes the least recently used content until the rest fits. Recently used content stays,
// as readers may have it open.
func (d *disk) evict(now time.Time, limit int64) error {
	total := int64(0)
	digests := []string{}
	for digest, content := range d.contents {
		total += content.size
		digests = append(digests, digest)
	}
	slices.SortFunc(digests, func(a, b string) int {
		return cmp.Or(d.contents[a].used.Compare(d.contents[b].used), cmp.Compare(a, b))
	})
	var problems error
	for _, digest := range digests {
		content := d.contents[digest]
		if total <= limit || now.Sub(content.used) < d.recent {
			break
		}
		total -= content.size
		delete(d.contents, digest)
		problems = errors.Join(problems, removeAll(d.path(digest)))
	}
	return problems
}

// seal makes everything below the folder read-only, and returns its size. The folder itself is
// sealed after its renaming, which writes to it.
func seal(folder string) (size int64, err error) {
	err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == folder {
			return err
		}
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
		return 0, err
	}
	return size, chmodFolders(folder, 0o500)
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
