// Package survey looks how what was applied stands in a user cluster.
package survey
