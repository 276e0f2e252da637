// Package laws checks the architecture rules of ARCHITECTURE.md: which package imports which, how long files and functions may
// get, which versions of dependencies are too old, that the pages explain every reason of a condition and every metric, and that pages
// and messages use plain words.
//
// Each check is a function from parsed files to complaints, so that a table next to it shows the wrong code that it finds.
package laws
