package manifest

import "strings"

// Document is one YAML document of a text.
type Document struct {
	Text string
	// Offset of the text's first byte.
	Offset int
}

// Split takes a text apart at document markers. What stands behind a marker on its line belongs to the next document.
func Split(text string) []Document {
	var documents []Document
	start, at := 0, 0
	for line := range strings.Lines(text) {
		skip, marker := markerLength(line)
		if marker {
			documents = append(documents, Document{Text: text[start:at], Offset: start})
			start = at + skip
		}
		at += len(line)
	}
	return append(documents, Document{Text: text[start:], Offset: start})
}

// markerLength says whether a line begins or ends a document, and how much of it is the marker.
func markerLength(line string) (int, bool) {
	for _, marker := range []string{"---", "..."} {
		rest, ok := strings.CutPrefix(line, marker)
		if ok && (rest == "" || strings.ContainsAny(rest[:1], " \t\r\n")) {
			return len(marker), true
		}
	}
	return 0, false
}
