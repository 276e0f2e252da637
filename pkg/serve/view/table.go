package view

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/trellis-addons/trellis/pkg/base/text"
)

// Colour of a text on a terminal, as the number of its escape sequence.
type Colour string

// The colours: none, and those of states.
const (
	Plain  Colour = ""
	Red    Colour = "31"
	Green  Colour = "32"
	Yellow Colour = "33"
)

// Paint makes a text of this colour.
func (c Colour) Paint(words string) string {
	if c == Plain || words == "" {
		return words
	}
	return "\x1b[" + string(c) + "m" + words + "\x1b[0m"
}

// Column of a table.
type Column struct {
	Head string
	// Wide columns are shown on request only.
	Wide bool
	// Spare columns are left out, the last first, where the terminal is too narrow.
	Spare bool
	// Wrap continues long texts on further lines; others are cut.
	Wrap bool
}

// Cell is one text of a table.
type Cell struct {
	Text   string
	Colour Colour
}

// Table has a cell for each column in every row.
type Table struct {
	Columns []Column
	Rows    [][]Cell
}

// NewTable makes a table without rows. A head may end in marks: * for a wide column, ? for a spare one, > for one that wraps.
func NewTable(heads ...string) Table {
	var made Table
	for _, head := range heads {
		name := strings.TrimRight(head, "*?>")
		marks := head[len(name):]
		made.Columns = append(made.Columns, Column{
			Head: name, Wide: strings.Contains(marks, "*"), Spare: strings.Contains(marks, "?"), Wrap: strings.Contains(marks, ">"),
		})
	}
	return made
}

// Style says how a table is written.
type Style struct {
	// Width of the terminal in columns; 0: no limit.
	Width        int
	Wide, Colour bool
}

// gap is the number of spaces between columns.
const gap = 3

// leastCell is how many characters a cell keeps of a longer text.
const leastCell = 8

// Add adds a row.
func (t *Table) Add(cells ...Cell) { t.Rows = append(t.Rows, cells) }

// Of makes plain cells.
func Of(texts ...string) []Cell {
	cells := make([]Cell, len(texts))
	for i, one := range texts {
		cells[i].Text = one
	}
	return cells
}

// Fields is a table without heads: a name and a text in each row. Names without a text are left out.
func Fields(pairs ...string) Table {
	table := Table{Columns: []Column{{}, {Wrap: true}}}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			table.Add(Of(pairs[i], pairs[i+1])...)
		}
	}
	return table
}

// Text is the table with a line for each row, or several where a column wraps. On a terminal no line is longer than its width.
func (t *Table) Text(style Style) string {
	widths := t.widths()
	chosen := t.fitting(widths, style)
	var out strings.Builder
	if slices.ContainsFunc(t.Columns, func(column Column) bool { return column.Head != "" }) {
		heads := make([]Cell, len(t.Columns))
		for i, column := range t.Columns {
			heads[i].Text = column.Head
		}
		t.write(&out, heads, chosen, widths, style)
	}
	for _, row := range t.Rows {
		t.write(&out, row, chosen, widths, style)
	}
	return out.String()
}

// write writes the lines of a row.
func (t *Table) write(out *strings.Builder, row []Cell, chosen, widths []int, style Style) {
	parts, most := make([][]string, len(chosen)), 1
	at := 0
	for i, column := range chosen {
		parts[i] = []string{clean(row[column].Text)}
		if width := min(widths[column], style.Width-at); style.Width > 0 && t.Columns[column].Wrap {
			parts[i] = wrapped(parts[i][0], width)
		} else if style.Width > 0 {
			parts[i][0] = Cut(parts[i][0], width)
		}
		most, at = max(most, len(parts[i])), at+widths[column]+gap
	}
	for number := range most {
		var line strings.Builder
		for i, column := range chosen {
			words, padding := "", widths[column]+gap
			if number < len(parts[i]) {
				words = parts[i][number]
				padding -= utf8.RuneCountInString(words)
			}
			if style.Colour {
				words = row[column].Colour.Paint(words)
			}
			line.WriteString(words + strings.Repeat(" ", max(0, padding)))
		}
		out.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}

// wrapped breaks a text between words into lines of at most this many characters; a longer word is cut.
func wrapped(words string, most int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(words) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= most:
			line += " " + word
		default:
			lines, line = append(lines, Cut(line, most)), word
		}
	}
	return append(lines, Cut(line, most))
}

// clean is a text for a cell: one line of printable characters, and a hyphen for an empty one. A space stays blank.
func clean(words string) string {
	if words == "" {
		return "-"
	}
	return strings.TrimRight(text.Line(words), " ")
}

// Cut shortens a text to a number of characters.
func Cut(words string, most int) string {
	runes := []rune(words)
	if len(runes) <= most {
		return words
	}
	return string(runes[:max(0, most-1)]) + "…"
}

// widths are the widest texts of the columns, in characters.
func (t *Table) widths() []int {
	widths := make([]int, len(t.Columns))
	for i, column := range t.Columns {
		widths[i] = utf8.RuneCountInString(column.Head)
		for _, row := range t.Rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(clean(row[i].Text)))
		}
	}
	return widths
}

// fitting are the columns to show. Where they are too wide, spare ones are left out; then the widest is shortened.
func (t *Table) fitting(widths []int, style Style) []int {
	var chosen []int
	for i, column := range t.Columns {
		if !column.Wide || style.Wide {
			chosen = append(chosen, i)
		}
	}
	if style.Width <= 0 {
		return chosen
	}
	total := func() int {
		sum := gap * (len(chosen) - 1)
		for _, column := range chosen {
			sum += widths[column]
		}
		return sum
	}
	for at := len(chosen) - 1; at >= 0 && total() > style.Width; at-- {
		if t.Columns[chosen[at]].Spare {
			chosen = append(chosen[:at], chosen[at+1:]...)
		}
	}
	for total() > style.Width {
		widest := chosen[0]
		for _, column := range chosen {
			if widths[column] > widths[widest] {
				widest = column
			}
		}
		if widths[widest] <= leastCell {
			break
		}
		widths[widest]--
	}
	return chosen
}
