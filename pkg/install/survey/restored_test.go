package survey_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/apply"
	"github.com/trellis-addons/trellis/pkg/install/survey"
	"github.com/trellis-addons/trellis/test/lab"
)

// A record, or the user cluster, is restored from before our manager wrote other values to the same fields. It fails if
// compare ignores the time of a write, in either case; if accept does not record it, which is permanent drift; if a
// write without a change is drift; if a dry run writes, or does not distinguish other content from the recorded one;
// and if an object is written that was not written in between.
func TestValuesOfAnotherRecordArePutBack(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	objects := l.Prepare(lab.TwoMaps)
	before := l.Install(objects, nil)
	before = l.Install(objects, before.Unconfirmed()) // writes existing content
	if drift := l.Drift(before); len(drift) > 0 {
		t.Fatalf("drift where nothing changed: %v", drift)
	}
	after := before
	for edits := 0; writtenAt(after) == writtenAt(before); edits++ { // API servers count seconds
		after = l.Update(strings.Replace(lab.TwoMaps, "green", fmt.Sprintf("red-%d", edits), 1), after)
	}
	other := l.Get(lab.ConfigMaps, l.Unique, "other").GetResourceVersion()
	drift := l.Drift(before)
	if got := driftReasons(drift); got != survey.DriftNewer || drift[0].WrittenAt != writtenAt(after) {
		t.Fatalf("the record of before: got drift %v, want that of one object", drift)
	}
	recorded := apply.Applied{Objects: objects, Inventory: before}
	at := map[ownership.Key]int64{drift[0].Key: drift[0].WrittenAt}
	l.Eventually("other content is told from that on record, once the second is over", func() bool {
		return len(lab.Must(apply.AsRecorded(t.Context(), l.Target, l.Owner, at, recorded))(t)) == 0
	})
	repaired := lab.Must(apply.Repair(t.Context(), l.Target, l.Owner, lab.KeysOf(drift), recorded))(t)
	if diff := cmp.Diff(map[string]any{"color": "green"}, l.Data("settings")); diff != "" {
		t.Errorf("put back (-want +got):\n%s", diff)
	}
	if again := l.Drift(repaired.Inventory); len(again) > 0 {
		t.Errorf("it has still drifted: %v", again)
	}
	if now := l.Get(lab.ConfigMaps, l.Unique, "other").GetResourceVersion(); now != other {
		t.Error("the object that nobody wrote was written")
	}
	at[drift[0].Key] = writtenAt(repaired.Inventory) // as if the repair's record was lost
	if same := lab.Must(apply.AsRecorded(t.Context(), l.Target, l.Owner, at, recorded))(t); len(same) != 1 {
		t.Errorf("what is on record is taken for other content: %v", same)
	}
	for at := range after { // as after a restore of the user cluster
		after[at].WrittenAt = time.Now().Add(time.Hour).Unix()
	}
	if got := driftReasons(l.Drift(after)); got != survey.DriftOlder+" "+survey.DriftOlder {
		t.Errorf("the record of later: got drift %q", got)
	}
	for at := range after { // as if the API server gives no time
		after[at].WrittenAt = 0
	}
	if drift := l.Drift(after); len(drift) > 0 {
		t.Errorf("drift since a time that is not on record: %v", drift)
	}
}

// writtenAt is the last time of all entries.
func writtenAt(inventory ownership.Inventory) (last int64) {
	for _, entry := range inventory {
		last = max(last, entry.WrittenAt)
	}
	return last
}
