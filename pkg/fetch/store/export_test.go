package store

import (
	"encoding/binary"
	"time"
)

// Label is the label under which a host is counted.
func (m *Metrics) Label(host string) string { return m.hosts.Label(host) }

// SetLargest sets the maximum space of one fetch.
func (s *Store) SetLargest(bytes int64) { s.disk.largest = bytes }

// SetCollect replaces the search for readers that ended.
func (s *Store) SetCollect(collect func() time.Duration) { s.disk.collect = collect }

// Entries is the number of references that the store checks.
func (s *Store) Entries() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.entries)
}

// SetRemove replaces the removal of contents; the function gets the product's one.
func (s *Store) SetRemove(remove func(path string, product func(string) error) error) {
	product := s.disk.remove
	s.disk.remove = func(path string) error { return remove(path, product) }
}

// IsLocked reports whether a request for content would wait.
func (s *Store) IsLocked() bool {
	isFree := s.disk.mu.TryLock()
	if isFree {
		s.disk.mu.Unlock()
	}
	return !isFree
}

// DigestLimit is the maximum number of known revisions.
const DigestLimit = digestLimit

// Know adds so many known revisions with the same content, and returns the number of all.
func (s *Store) Know(more int, digest string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n := range more {
		var key flight
		binary.BigEndian.PutUint64(key[:], uint64(n))
		s.digests[key] = digest
	}
	return len(s.digests)
}

// IndexContents is the number of contents that the store keeps of the index that it read.
func (s *Store) IndexContents() int { return len(s.disk.index.Contents) }
