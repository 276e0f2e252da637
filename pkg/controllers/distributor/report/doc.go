// Package report writes the status of each catalogue that people wrote, or that was generated.
package report
