package copies

import (
	"testing"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// A gate counts groups, so it is for those that it was decided on. Red when an edit of the groups keeps the gate of before, by which a
// group that waits for approval opens, when a decision on the set of before brings that gate back, or when a copy that others changed
// loses it.
func TestAGateIsForTheGroupsThatItWasDecidedOn(t *testing.T) {
	spec := &v1.AddonSetSpec{}
	before := &Set{UID: "set", Generation: 1, Spec: spec, Digest: "two groups"}
	edited := &Set{UID: "set", Generation: 2, Spec: spec, Digest: "three groups"}
	refused := &Set{UID: "set", Generation: 2}
	decided := func(generation int64, gate string) Order {
		return Order{UID: "set", Generation: generation, Gate: gate}
	}
	for _, test := range []struct {
		why   string
		has   string
		set   *Set
		order Order
		want  string
	}{
		{"what was decided", "two groups", before, decided(1, "r/1"), "r/1"},
		{"nothing was decided since", "two groups", before, decided(1, ""), "r/2"},
		{"nothing was decided by this process", "two groups", before, Order{}, "r/2"},
		{"an edit", "two groups", edited, decided(1, "r/2"), ""},
		{"an edit that was not judged", "two groups", edited, decided(2, ""), ""},
		{"the edit is there, and the decision is from before it", "three groups", edited, decided(1, "r/9"), "r/2"},
		{"the edit is there, and was judged", "three groups", edited, decided(2, "r/1"), "r/1"},
		{"an edit that is refused", "two groups", refused, decided(2, ""), "r/2"},
	} {
		keeper := NewKeeper(nil, "north", "catalogues")
		keeper.believed["tools"] = believed{gate: "r/2", digest: test.has}
		got := keeper.annotations("tools", test.set, test.order, &found{annotations: map[string]string{}})
		if gate := got[v1.AnnotationGate]; gate != test.want {
			t.Errorf("%s: gate %q, want %q", test.why, gate, test.want)
		}
	}
}

// Red when annotation leave-out of a set is not brought to its copy, stays after it was taken off, or goes while this process decided nothing.
func TestWhoIsLeftOutIsBroughtToTheSeed(t *testing.T) {
	set := &Set{UID: "set", Generation: 1, Spec: &v1.AddonSetSpec{}, Digest: "content"}
	for _, test := range []struct {
		why   string
		order Order
		want  string
	}{
		{"it is set", Order{UID: "set", LeaveOut: "amber"}, "amber"},
		{"it was taken off", Order{UID: "set"}, ""},
		{"nothing was decided by this process", Order{}, "birch"},
	} {
		keeper := NewKeeper(nil, "north", "catalogues")
		keeper.believed["tools"] = believed{leaveOut: "birch", digest: "content"}
		got := keeper.annotations("tools", set, test.order, &found{annotations: map[string]string{}})
		if value, is := got[v1.AnnotationLeaveOut]; value != test.want || is != (test.want != "") {
			t.Errorf("%s: %q, want %q", test.why, value, test.want)
		}
	}
}
