package store

// Label is the name that a host is counted under.
func (m *Metrics) Label(host string) string { return m.hosts.Label(host) }

// SetLargest says what one fetch takes at most.
func (s *Store) SetLargest(bytes int64) { s.disk.largest = bytes }
