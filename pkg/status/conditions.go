// Package status is the grammar of conditions: how one is set, cut and cleaned, and how Ready sums the others up. It is
// the only condition helper; every controller writes conditions through it.
package status

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// messageLimit is the longest message of a condition, in bytes.
const messageLimit = 1024

// Set writes a condition. The transition time changes only with the status, and a condition that says
// the same again leaves everything as it was.
func Set(conditions *[]metav1.Condition, condition metav1.Condition) {
	condition.Message = Message(condition.Message)
	meta.SetStatusCondition(conditions, condition)
}

// True sets a condition to True.
func True(conditions *[]metav1.Condition, generation int64, kind, reason, message string) {
	Set(conditions, metav1.Condition{
		Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message, ObservedGeneration: generation,
	})
}

// False sets a condition to False.
func False(conditions *[]metav1.Condition, generation int64, kind, reason, message string) {
	Set(conditions, metav1.Condition{
		Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message, ObservedGeneration: generation,
	})
}

// Unknown sets a condition to Unknown.
func Unknown(conditions *[]metav1.Condition, generation int64, kind, reason, message string) {
	Set(conditions, metav1.Condition{
		Type: kind, Status: metav1.ConditionUnknown, Reason: reason, Message: message, ObservedGeneration: generation,
	})
}

// Remove takes a condition off that does not apply.
func Remove(conditions *[]metav1.Condition, kind string) {
	meta.RemoveStatusCondition(conditions, kind)
}

// Count puts a number and what it counts together: "1 version", "2 versions".
func Count(number int, noun string) string {
	if number == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", number, noun)
}

// Names lists the first few names, and counts the others.
func Names(names []string, most int) string {
	text := strings.Join(names[:min(len(names), most)], ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Message makes a text fit for a condition or an event: one line, printable, at most 1 KiB. Texts come from templates and
// from user clusters, so nothing in them is trusted; of one without end only the begin is looked at.
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

// Cut keeps the begin of a text, so many bytes of it at most, and shows that there is more.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// readLimit is how much of a text a message is made of, in bytes.
const readLimit = 16 * messageLimit

// Line makes a text one line of printable characters, whatever its length.
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
