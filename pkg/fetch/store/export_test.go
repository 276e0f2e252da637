package store

import "time"

// Label is the name that a host is counted under.
func (m *Metrics) Label(host string) string { return m.hosts.Label(host) }

// SetLargest says what one fetch takes at most.
func (s *Store) SetLargest(bytes int64) { s.disk.largest = bytes }

// SetCollect says how readers that ended are found.
func (s *Store) SetCollect(collect func() time.Duration) { s.disk.collect = collect }

// Entries is how many references the store checks.
func (s *Store) Entries() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.entries)
}
