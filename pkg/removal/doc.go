// Package removal takes objects out of a user cluster.
package removal
