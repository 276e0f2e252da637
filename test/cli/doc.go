// Package cli runs `kubectl addons` against API servers: each verb, its output as files, bad input, and missing rights.
package cli
