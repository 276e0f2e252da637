// Package expect is a small vocabulary for tests against real API servers: what comes true in time, what stays true, which
// condition an object has. Its words poll; a failed one says what was seen last.
package expect
