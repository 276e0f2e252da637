package rendering

import "testing"

func TestByChance(t *testing.T) {
	type m = map[string]any
	type l = []any
	for _, test := range []struct {
		why                   string
		recorded, once, twice any
		want                  bool
	}{
		{"nothing differs", m{"a": "x"}, m{"a": "x"}, m{"a": "x"}, true},
		{"made up", m{"a": "x"}, m{"a": "y"}, m{"a": "z"}, true},
		{"changed", m{"a": "x"}, m{"a": "y"}, m{"a": "y"}, false},
		{"made up, and changed beside it", m{"a": "x", "b": "1"}, m{"a": "y", "b": "2"}, m{"a": "z", "b": "2"}, false},
		{"added", m{}, m{"a": "y"}, m{"a": "y"}, false},
		{"added by chance", m{}, m{"a": "y"}, m{}, true},
		{"removed", m{"a": "x"}, m{}, m{}, false},
		{"removed by chance", m{"a": "x"}, m{}, m{"a": "x"}, true},
		{"a name that is made up", m{"job-1": "x"}, m{"job-2": "x"}, m{"job-3": "x"}, true},
		{"added beside a name that is made up", m{"job-1": "x"}, m{"job-2": "x", "a": "y"}, m{"job-3": "x", "a": "y"}, false},
		{"an element", l{"a", "x"}, l{"a", "y"}, l{"a", "z"}, true},
		{"an element that is changed", l{"a", "x"}, l{"b", "y"}, l{"b", "z"}, false},
		{"one more", l{"a"}, l{"a", "b"}, l{"a", "b"}, false},
		{"so many by chance", l{"a"}, l{"a", "b"}, l{}, true},
		{"another kind of value", m{"a": m{}}, m{"a": "y"}, m{"a": "y"}, false},
		{"null", m{"a": nil}, m{"a": "y"}, m{"a": "y"}, false},
	} {
		if got := byChance(test.recorded, test.once, test.twice); got != test.want {
			t.Errorf("%s: %t, want %t", test.why, got, test.want)
		}
	}
}
