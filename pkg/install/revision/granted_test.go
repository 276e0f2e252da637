package revision_test

import (
	"slices"
	"testing"

	"github.com/trellis-addons/trellis/pkg/install/revision"
	"github.com/trellis-addons/trellis/pkg/values"
)

// Red when a light record forgets the platform's values, when those of other layers count, or those of a revision that was granted none.
func TestRecordsKnowThePlatformsValues(t *testing.T) {
	t.Parallel()
	record := &revision.Record{
		PlatformValues: "digest", Values: map[string]any{"mine": "a", "deep": map[string]any{"a.b": "secret", "own": "b"}},
		Origins: values.Origins{"mine": "installation", `deep.a\.b`: values.OriginPlatform, "deep.own": "installation"},
	}
	want := []any{"secret"}
	if whole, light := record.Granted(), record.Light().Granted(); !slices.Equal(whole, want) || !slices.Equal(light, want) {
		t.Errorf("got %q, and light %q", whole, light)
	}
	record.PlatformValues = ""
	var none *revision.Record
	if found := slices.Concat(record.Granted(), record.Light().Granted(), none.Granted()); len(found) > 0 {
		t.Errorf("without a grant: %q", found)
	}
}
