package store

// Label is the name that a host is counted under.
func (m *Metrics) Label(host string) string { return m.hosts.Label(host) }
