package markdown

import (
	"strconv"
	"strings"
	"unicode"
)

// Anchor makes the anchor of a heading, as git hosts do: letters and digits in lower case, hyphens for spaces, everything else left
// out; the second of a name has "-1". taken counts the names of the page.
func Anchor(heading string, taken map[string]int) string {
	var made strings.Builder
	for _, letter := range strings.ToLower(strings.TrimSpace(heading)) {
		switch {
		case unicode.IsLetter(letter), unicode.IsDigit(letter), letter == '-', letter == '_':
			made.WriteRune(letter)
		case letter == ' ':
			made.WriteByte('-')
		}
	}
	anchor := made.String()
	before := taken[anchor]
	taken[anchor]++
	if before > 0 {
		anchor += "-" + strconv.Itoa(before)
	}
	return anchor
}
