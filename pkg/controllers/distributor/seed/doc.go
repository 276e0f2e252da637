// Package seed brings to each seed what it should have.
package seed
