package store

import "time"

// Label is the name that a host is counted under.
func (m *Metrics) Label(host string) string { return m.hosts.Label(host) }

// SetLargest says what one fetch takes at most.
func (s *Store) SetLargest(bytes int64) { s.disk.largest = bytes }

// SetMost says how many contents fit.
func (s *Store) SetMost(contents int64) { s.disk.most = contents }

// Contents is how many contents there are.
func (s *Store) Contents() int {
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	return len(s.disk.contents)
}

// SetCollect says how readers that ended are found.
func (s *Store) SetCollect(collect func() time.Duration) { s.disk.collect = collect }

// Entries is how many references the store checks.
func (s *Store) Entries() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.entries)
}
