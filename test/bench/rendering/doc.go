// Package rendering measures rendering in children: a chart side by side with Helm's own parts in process, and what a bomb
// does to others. The figures are printed; the tests hold them to generous bounds.
package rendering
