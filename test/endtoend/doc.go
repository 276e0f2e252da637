// Package endtoend holds tests of the whole platform: both managers as processes of their own on real API servers.
package endtoend
