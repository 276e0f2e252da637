package expect

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Event waits for an event of that reason about the object, with all of these words in its note.
func Event(t testing.TB, reader client.Reader, about client.Object, reason string, words ...string) {
	t.Helper()
	Eventually(t, Patience, func() error {
		events, err := eventsOf(t, reader, about)
		if err != nil {
			return err
		}
		var reported []string
		for _, one := range events {
			if one.Reason == reason && Says(one.Note, words...) == nil {
				return nil
			}
			reported = append(reported, one.Reason+": "+one.Note)
		}
		return fmt.Errorf("no event %s of %s says %q; there are %q", reason, about.GetName(), words, reported)
	})
}

// Events are those about the object, the oldest first.
func Events(t testing.TB, reader client.Reader, about client.Object) []eventsv1.Event {
	t.Helper()
	events, err := eventsOf(t, reader, about)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

func eventsOf(t testing.TB, reader client.Reader, about client.Object) ([]eventsv1.Event, error) {
	var list eventsv1.EventList
	if err := reader.List(t.Context(), &list, client.InNamespace(about.GetNamespace())); err != nil {
		return nil, err
	}
	of := slices.DeleteFunc(list.Items, func(one eventsv1.Event) bool {
		return one.Regarding.Name != about.GetName() || one.Regarding.Namespace != about.GetNamespace()
	})
	slices.SortStableFunc(of, func(a, b eventsv1.Event) int { return a.EventTime.Compare(b.EventTime.Time) })
	return of, nil
}

// Recorded waits until the reasons of all events of a recorder, each "type reason note", are these, with commas between them.
func Recorded(t testing.TB, events <-chan string, want string) {
	t.Helper()
	var reasons []string
	Eventually(t, Patience, func() error {
		for {
			select {
			case reported := <-events:
				reasons = append(reasons, strings.Fields(reported)[1])
			default:
				if got := strings.Join(reasons, ","); got != want {
					return fmt.Errorf("the events are %q, want %q", got, want)
				}
				return nil
			}
		}
	})
}

// Says returns an error unless a text has all of these words.
func Says(text string, words ...string) error {
	for _, word := range words {
		if !strings.Contains(text, word) {
			return fmt.Errorf("%q lacks %q", text, word)
		}
	}
	return nil
}
