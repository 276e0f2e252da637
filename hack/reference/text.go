package main

import (
	"embed"
	"fmt"
	"strings"
)

// document is a page under way.
type document struct{ strings.Builder }

//go:embed about
var abouts embed.FS

// begin gives a page its title and what it is, which people wrote.
func begin(name string) *document {
	about, err := abouts.ReadFile("about/" + name + ".txt")
	if err != nil {
		panic(err) // the texts are part of the program
	}
	made := &document{}
	fmt.Fprintf(made, "<!-- Written by `make generate` from the code. -->\n%s", about)
	return made
}

func (d *document) heading(text string) { fmt.Fprintf(d, "\n## %s\n\n", text) }

func (d *document) paragraph(text string) { fmt.Fprintf(d, "%s\n\n", text) }

// head begins a table.
func (d *document) head(columns ...string) {
	fmt.Fprintf(d, "| %s |\n%s|\n", strings.Join(columns, " | "), strings.Repeat("|---", len(columns)))
}

// row adds a line to it. Cells are Markdown already.
func (d *document) row(cells ...string) {
	for i, cell := range cells {
		cells[i] = strings.ReplaceAll(strings.Join(strings.Fields(cell), " "), "|", `\|`)
	}
	fmt.Fprint(d, "|")
	for _, cell := range cells {
		if cell != "" {
			cell = " " + cell
		}
		fmt.Fprint(d, cell, " |")
	}
	fmt.Fprintln(d)
}

// code marks a word as one of a program; "" stays empty.
func code(word string) string {
	if word == "" {
		return ""
	}
	return "`" + word + "`"
}

func codes(words []string) string {
	marked := make([]string, 0, len(words))
	for _, word := range words {
		if word == "" {
			word = `""`
		}
		marked = append(marked, code(word))
	}
	return strings.Join(marked, ", ")
}

// plain keeps words of the code from being read as marks.
func plain(text string) string {
	return strings.NewReplacer("<", "&lt;", "*", `\*`, "_", `\_`, "[", `\[`).Replace(text)
}
