// Package disk removes folders in which stores of content were. A store seals what it keeps, so a user who is not root, who
// may read any of it, can't remove it before its folders are writable again.
package disk
