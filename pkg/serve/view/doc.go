// Package view makes what people are shown out of API objects: rows, counts, states, tables. It is pure: it takes the
// clock and the terminal's width as arguments. `kubectl addons` prints it.
//
// Every text of a table is cleaned: no control character of a name or message reaches a terminal.
package view
