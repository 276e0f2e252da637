// Package text makes texts fit to be shown: counted, listed, and cleaned of foreign characters.
package text

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// messageLimit is the longest message of a condition or event, in bytes.
const messageLimit = 1024

// Count joins a number and a noun: "1 version", "2 versions".
func Count(number int, noun string) string {
	if number == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", number, noun)
}

// Verb is the form of a verb for a number.
func Verb(number int, one, many string) string {
	if number == 1 {
		return one
	}
	return many
}

// Quoted are the forms of a value inside quotes: of Go, and of JSON as Go writes it, which encodes <, > and &
// (encoding/json, HTMLEscape).
func Quoted(value string) []string {
	quoted := strconv.Quote(value)
	forms := []string{quoted[1 : len(quoted)-1]}
	if coded, err := json.Marshal(value); err == nil {
		forms = append(forms, string(coded[1:len(coded)-1]))
	}
	return forms
}

// Names lists the first few names, and counts the others.
func Names(names []string, most int) string {
	list := strings.Join(names[:min(len(names), most)], ", ")
	if more := len(names) - most; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return list
}

// First joins the first few texts by "; ", and counts the others.
func First(texts []string, most int) string {
	if more := len(texts) - most; more > 0 {
		texts = append(slices.Clone(texts[:most]), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, "; ")
}

// Message makes a text fit for a condition or an event: one line, printable, at most 1 KiB. Texts
// come from templates and from user clusters, so a long one is read only in part.
func Message(text string) string {
	clean := Line(text[:min(len(text), readLimit)])
	if len(clean) <= messageLimit {
		return clean
	}
	cut := messageLimit - len(" …")
	for !utf8.RuneStart(clean[cut]) {
		cut--
	}
	return clean[:cut] + " …"
}

// Cut keeps the beginning of a text, up to a number of bytes, and marks the cut.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// CutWords is Cut at the end of a word, with the mark within the limit.
func CutWords(text string, most int) string {
	if len(text) <= most {
		return text
	}
	cut := text[:most-len(" …")+1]
	if end := strings.LastIndexByte(cut, ' '); end > 0 {
		return strings.TrimRight(cut[:end], " ") + " …"
	}
	return Cut(text, most-len("…"))
}

// readLimit is how much of a text Message reads, in bytes.
const readLimit = 16 * messageLimit

// Line makes a text one line of printable characters, regardless of its length.
func Line(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case r == utf8.RuneError || !unicode.IsPrint(r):
			return -1
		}
		return r
	}, text)
}
