// Package expect is the vocabulary of tests against real API servers: objects that are made, read, changed and deleted, which
// condition an object has, which events are about it, what comes true in time and what stays true. What takes time is polled;
// a failed word says what was seen last. A message is matched by its reason and by the words that matter: names, places and
// numbers.
package expect
