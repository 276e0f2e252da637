package store

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/trellis-addons/trellis/pkg/fetch"
)

const (
	indexFile = "index.json"
	// indexFormat changes when older indexes become unusable.
	indexFormat = 1
	// stretching makes guessing a password from the index slow.
	stretching = 200_000
	// lateWrite is the time that changes wait before they are written: the index is not written for each.
	lateWrite = 5 * time.Second
	// recordLifetime is the time that an unused reference stays in the index.
	recordLifetime = 30 * 24 * time.Hour
	mostRecords    = 4 * mostContents // any of them: many references can lead to one content
)

type index struct {
	Format   int                     `json:"format"`
	Salt     []byte                  `json:"salt"`
	Records  map[string]record       `json:"records"`
	Contents map[string]contentState `json:"contents"`

	kinds     fetch.Kinds
	mu        sync.Mutex
	stretched map[[sha256.Size]byte][]byte
}

type record struct {
	Revision       string    `json:"revision"`
	RevisionDigest string    `json:"revisionDigest,omitempty"`
	Digest         string    `json:"digest"`
	Checked        time.Time `json:"looked"`
}

type contentState struct {
	Size  int64     `json:"size"`
	Used  time.Time `json:"used"`
	Owner string    `json:"owner,omitempty"`
}

// readIndex reads the index. An unreadable one is ignored: everything is fetched again.
func readIndex(path string, kinds fetch.Kinds) (*index, error) {
	read := &index{}
	content, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err != nil || json.Unmarshal(content, read) != nil || read.Format != indexFormat || len(read.Salt) != sha256.Size {
		read = &index{Format: indexFormat, Salt: make([]byte, sha256.Size)}
		if _, err := rand.Read(read.Salt); err != nil {
			return nil, fmt.Errorf("creating salt: %w", err)
		}
	}
	if read.Records == nil {
		read.Records = map[string]record{}
	}
	read.kinds, read.stretched = kinds, map[[sha256.Size]byte][]byte{}
	return read, nil
}

// name represents a reference on disk.
func (i *index) name(reference fetch.Reference) (string, error) {
	if err := i.prepare(reference.Credentials); err != nil {
		return "", err
	}
	i.mu.Lock()
	identity := i.stretched[reference.Credentials.Identity()]
	i.mu.Unlock()
	key := i.kinds.Key(fetch.Reference{Location: reference.Location, Credentials: reference.Credentials.Public()})
	hasher := hmac.New(sha256.New, i.Salt)
	hasher.Write(key[:])
	hasher.Write(identity)
	return hex.EncodeToString(hasher.Sum(nil)), nil
}

// isPrepared reports whether name is fast for these credentials.
func (i *index) isPrepared(credentials fetch.Credentials) bool {
	if !credentials.IsSecret() {
		return true
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.stretched[credentials.Identity()] != nil
}

// prepare computes the slow hash of credentials, once: names on disk must resist guessing.
func (i *index) prepare(credentials fetch.Credentials) error {
	if i.isPrepared(credentials) {
		return nil
	}
	identity := credentials.Identity()
	stretched, err := pbkdf2.Key(sha256.New, string(identity[:]), i.Salt, stretching, sha256.Size)
	if err != nil {
		return fmt.Errorf("hash credentials: %w", err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.stretched[identity] = stretched
	return nil
}

// record returns the last result for a reference. False: none, or its content was removed.
func (d *disk) record(reference fetch.Reference) (record, bool) {
	name, err := d.index.name(reference)
	if err != nil {
		return record{}, false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	found, ok := d.index.Records[name]
	return found, ok && d.contents[found.Digest] != nil
}

// remember records a result.
func (d *disk) remember(reference fetch.Reference, found record) {
	name, err := d.index.name(reference)
	if err != nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.index.Records[name] = found
	d.writeLater()
}

// writeLater writes the index after a while, with all changes until then. A restart before that fetches again. The
// lock is held.
func (d *disk) writeLater() {
	if d.late == nil {
		d.late = time.AfterFunc(lateWrite, func() { _ = d.writeIndex() })
	}
}

// writeIndex replaces the file. Neither lock is held.
func (d *disk) writeIndex() error {
	d.writing.Lock()
	defer d.writing.Unlock()
	content, err := json.Marshal(d.snapshot())
	if err != nil {
		return err
	}
	fresh := filepath.Join(d.folder, workFolder, indexFile)
	if err := os.WriteFile(fresh, content, 0o600); err != nil {
		return err
	}
	return os.Rename(fresh, filepath.Join(d.folder, indexFile))
}

// snapshot is the index in the form to write, without records that are no longer needed.
func (d *disk) snapshot() *index {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.late != nil {
		d.late.Stop()
		d.late = nil
	}
	left := mostRecords
	found := &index{Format: d.index.Format, Salt: d.index.Salt, Contents: map[string]contentState{}}
	for digest, content := range d.contents {
		found.Contents[digest] = contentState{Size: content.size, Used: content.used, Owner: content.owner}
	}
	maps.DeleteFunc(d.index.Records, func(_ string, one record) bool {
		useful := d.contents[one.Digest] != nil && time.Since(one.Checked) <= recordLifetime && left > 0
		if useful {
			left--
		}
		return !useful
	})
	found.Records = maps.Clone(d.index.Records)
	return found
}
