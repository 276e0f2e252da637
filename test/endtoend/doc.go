// Package endtoend holds tests of the whole platform: both managers as the pods of their charts on real API servers.
package endtoend
