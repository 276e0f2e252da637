package ownership_test

import (
	"fmt"
	"testing"

	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
)

// A sibling adopts the objects that a removal leaves to it, and its own removal deletes them; the removal deletes
// objects that it leaves to none. This is tested for every pair of records about one object, and every installation
// that applied it. It fails if a merely planned object counts as the sibling's, so that the object outlives both; or if
// its record does not name the removed one.
func TestNoSharedObjectOutlivesItsOwners(t *testing.T) {
	for _, key := range []ownership.Key{
		{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "x"},
		{Group: "apiregistration.k8s.io", Kind: "APIService", Name: "x"},
	} {
		t.Run(key.Kind, func(t *testing.T) { outlives(t, key) })
	}
}

func outlives(t *testing.T, key ownership.Key) {
	t.Helper()
	entry := func(words string) *ownership.Entry {
		made := map[string]*ownership.Entry{
			"planned": {Key: key}, "recorded": {Key: key, UID: "u1"}, "replaced": {Key: key, UID: "u0"},
			"used": {Key: key, UID: "u1", Owner: "b"}, "used-anew": {Key: key, UID: "u0", Owner: "b"}, "used-of-c": {Key: key, UID: "u0", Owner: "c"},
		}
		return made[words]
	}
	withoutB := func(id string) string {
		if id == owner("b").ID() {
			return ""
		}
		return nameOf(id)
	}
	tried := 0
	for _, live := range []string{"applied:b label:b", "applied:b", "applied:b applied:us label:us"} {
		for _, theirs := range []string{"planned", "recorded"} { // the entry of b, which is removed
			for _, ours := range []string{"", "planned", "recorded", "replaced"} { // our entry; we stay
				for _, uses := range []string{"", "used", "used-anew", "used-of-c"} {
					for bits := range 4 {
						plans, knows := bits&1 != 0 || ours == "planned", bits&2 != 0
						us := ownership.Sibling{Name: "us", Knows: knows, Objects: map[ownership.Key]string{}}
						us.Owned, us.Used = map[ownership.Key]ownership.Entry{}, map[ownership.Key]ownership.Entry{}
						asked := ownership.Question{Owner: owner("us"), NameOf: withoutB, Entry: entry(ours), Shared: entry(uses)}
						if plans {
							us.Objects[key] = "content"
						}
						if asked.Entry == nil && plans {
							asked.Entry = entry("planned")
						}
						if asked.Entry != nil && asked.Shared == nil {
							us.Owned[key] = *asked.Entry
						}
						if asked.Shared != nil {
							us.Used[key] = *asked.Shared
						}
						if knows {
							asked.Left = []string{owner("b").ID()}
						}
						tried++
						what := fmt.Sprintf("%q, b has it %s, we have it %q and use it %q, planned %t, known %t", live, theirs, ours, uses, plans, knows)
						free, held := ownership.Inventory{*entry(theirs)}.SplitShared([]ownership.Sibling{us})
						if len(free) == 1 {
							byB := ownership.Of(object(live), ownership.Question{Owner: owner("b"), Entry: &free[0], NameOf: nameOf})
							if !byB.IsDeletable() {
								t.Errorf("%s: b neither leaves nor deletes it: %v", what, byB)
							}
							continue
						}
						found := ownership.Of(object(live), asked)
						if found.Whose != ownership.Ours && found.Whose != ownership.Inherited {
							t.Errorf("%s: %v is left to us, and we don't take it over: %v", what, held, found)
						}
						if asked.Shared != nil { // a removal uses the record's entry
							removed := *asked.Shared
							removed.Owner = ""
							asked.Entry = &removed
						}
						if found = ownership.Of(object(live), asked); !found.IsDeletable() {
							t.Errorf("%s: it outlives our removal: %v", what, found)
						}
					}
				}
			}
		}
	}
	if tried < 300 {
		t.Errorf("%d cases were tried", tried)
	}
}

// TestWhatNeedsAServerPassesToItsUsersOnly fails if an object that calls a server stays for a sibling that does not use
// it yet: the server is removed with its owner, and objects that the sibling needs are refused without it.
func TestWhatNeedsAServerPassesToItsUsersOnly(t *testing.T) {
	for _, key := range []ownership.Key{
		{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration", Name: "x"},
		{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration", Name: "x"},
		{Group: "apiregistration.k8s.io", Kind: "APIService", Name: "x"},
	} {
		entry := ownership.Entry{Key: key, UID: "u1"}
		planner := ownership.Sibling{Name: "planner", Knows: true, Objects: map[ownership.Key]string{key: "other"}}
		user := ownership.Sibling{Name: "user", Knows: true, Used: map[ownership.Key]ownership.Entry{key: {Key: key, UID: "u1", Owner: "b"}}}
		if free, _ := (ownership.Inventory{entry}).SplitShared([]ownership.Sibling{planner}); len(free) != 1 {
			t.Errorf("%s stays for a sibling that plans it", key)
		}
		if _, held := (ownership.Inventory{entry}).SplitShared([]ownership.Sibling{planner, user}); len(held) != 1 {
			t.Errorf("%s does not stay for a sibling that uses it", key)
		}
	}
}
