package installer

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/revision"
	"github.com/trellis-addons/trellis/pkg/install/survey"
)

// fakeRecords has one record and keeps saved ones.
type fakeRecords struct {
	RecordReader
	RecordWriter
	record *revision.Record
	saves  int
}

// Load returns the record.
func (s *fakeRecords) Load(context.Context, string, ownership.Owner) (*revision.Record, error) {
	return s.record, nil
}

// LoadFirst returns the record.
func (s *fakeRecords) LoadFirst(context.Context, string, ownership.Owner) (*revision.Record, error) {
	return s.record, nil
}

// SaveApplied keeps the record.
func (s *fakeRecords) SaveApplied(_ context.Context, _ string, record *revision.Record) error {
	s.record, s.saves = record, s.saves+1
	return nil
}

func inventoryOf(names ...string) (entries ownership.Inventory) {
	for _, name := range names {
		entries = append(entries, ownership.Entry{Key: ownership.Key{Kind: "Job", Namespace: "shop", Name: name}, UID: "1", Content: name})
	}
	return entries
}

// TestFinishedJobsAreRecordedAtOnce fails if recordHealth waits until everything is healthy: a Job that is removed
// before would run once more. It also fails if it writes an unchanged record.
func TestFinishedJobsAreRecordedAtOnce(t *testing.T) {
	entries := inventoryOf("quick", "slow")
	kept := &fakeRecords{record: &revision.Record{State: revision.StateApplied, Inventory: entries}}
	p := (&Installer{Reads: kept, Writes: kept}).NewRun(&State{Record: kept.record.Light()}, "cluster-a", Asked{}, Seed{})
	unfinished := survey.Health{Total: 2, Healthy: 1, Finished: []ownership.Key{entries[0].Key}}
	for range 2 {
		if outcome := p.recordHealth(t.Context(), &unfinished); outcome != nil {
			t.Fatal(outcome)
		}
	}
	if kept.saves != 1 || !p.Record().Inventory[0].Finished || p.Record().Inventory[1].Finished {
		t.Errorf("%d saves, inventory %+v; want the first Job finished, on record once", kept.saves, p.Record().Inventory)
	}
	if p.Record().Settled {
		t.Error("what is not healthy is settled")
	}
}

// TestRecordedObjectsKeepTheirDigits fails if restored objects are decoded into floating point, which loses the last
// digits of large integers.
func TestRecordedObjectsKeepTheirDigits(t *testing.T) {
	const object = `{"apiVersion":"example.com/v1","kind":"Widget","spec":{"serial":9007199254740993}}`
	kept := &fakeRecords{record: &revision.Record{Objects: []json.RawMessage{json.RawMessage(object)}}}
	p := (&Installer{Reads: kept, Writes: kept}).NewRun(&State{Record: kept.record.Light()}, "cluster-a", Asked{}, Seed{})
	_, objects, err := p.recordedObjects(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if again, err := revision.EncodeObjects(objects); err != nil || string(again[0]) != object {
		t.Errorf("%s became %s: %v", object, again, err)
	}
}

// TestUnhealthyNamesTheObject fails if the message does not name the object.
func TestUnhealthyNamesTheObject(t *testing.T) {
	health := survey.Health{Total: 2, Unhealthy: []calls.Note{
		{Key: ownership.Key{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}, Reason: "InProgress", Message: "Available: 0/1"}, {},
	}}
	p := &Run{State: &State{Record: &revision.Record{}}, Now: time.Now(), Health: &health}
	message := p.Unhealthy().Message
	if !strings.Contains(message, "Deployment.apps shop/web: Available: 0/1 (and 1 more)") {
		t.Errorf("got %q", message)
	}
}

// TestWhatBreaksHasItsTimeAgain fails if healthy objects are late as soon as one of them breaks, or never; and if a
// revision that this process never saw healthy has more than its time.
func TestWhatBreaksHasItsTimeAgain(t *testing.T) {
	applied := time.Now()
	record := &revision.Record{State: revision.StateApplied}
	record.Time.Time, record.Timeout.Duration = applied, 10*time.Minute
	well, broken := survey.Health{Total: 1, Healthy: 1}, survey.Health{Total: 1}
	p := &Run{State: &State{Record: record}}
	see := func(after time.Duration, health *survey.Health) string {
		p.Now = applied.Add(after)
		p.noteHealth(health)
		p.Health, p.State.health = health, health
		return p.Unhealthy().Reason
	}
	for _, step := range []struct {
		why    string
		after  time.Duration
		health *survey.Health
		want   string
	}{
		{"it is new", time.Minute, &broken, v1.ReasonProgressing},
		{"it never got healthy", 11 * time.Minute, &broken, v1.ReasonTimeout},
		{"it breaks", time.Hour, &broken, v1.ReasonProgressing},
		{"it stays so", time.Hour + 9*time.Minute, &broken, v1.ReasonProgressing},
		{"its time is over", time.Hour + 11*time.Minute, &broken, v1.ReasonTimeout},
	} {
		if step.after == time.Hour {
			see(30*time.Minute, &well)
		}
		if got := see(step.after, step.health); got != step.want {
			t.Errorf("%s: %s, want %s", step.why, got, step.want)
		}
	}
}

// TestFightsOutliveRevisionsOfOtherObjects fails if a new revision of other objects ends a fight, or one of the object
// itself does not.
func TestFightsOutliveRevisionsOfOtherObjects(t *testing.T) {
	before := inventoryOf("a", "b", "c")
	after := inventoryOf("a", "b")
	after[1].Content = "new"
	count := repairCount{count: fightRepairs}
	kept := sameContent(map[ownership.Key]repairCount{before[0].Key: count, before[1].Key: count, before[2].Key: count}, before, after)
	if len(kept) != 1 || kept[before[0].Key] != count {
		t.Errorf("kept %+v, want the count of the first object alone", kept)
	}
}
