// Package distributor measures the road from a catalogue on the master to all seeds: the CPU of a merge, the objects that
// an edit writes, the time to all seeds with and without seeds that are away, the manager's memory, and how gently many git
// catalogues treat one host.
package distributor
