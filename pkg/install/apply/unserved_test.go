package apply_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/trellis-addons/trellis/pkg/install/apply"
	"github.com/trellis-addons/trellis/test/lab"
)

// TestDefinitionThatGoesDuringARolloutIsRecreated fails if the rollout does not read a ready definition again
// (recheckDefinitions): it would wait forever; and if the objects of the deleted kind are not written again.
func TestDefinitionThatGoesDuringARolloutIsRecreated(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	objects := lab.Manifests(lab.Definition("Widget", "Namespaced", ""), lab.Custom("Widget", "v1", "one"), lab.Custom("Widget", "v1", "two"))
	rollout := apply.NewRollout(l.Owner, l.Prepare(objects), nil, apply.RolloutOptions{})
	var atGate, atSecond sync.Once
	rollout.SetGate(func(context.Context) (bool, error) {
		atGate.Do(func() { l.Unserve("widgets") })
		return true, nil
	})
	first := l.Widgets()
	written := fmt.Sprintf("PATCH /apis/%s/v1/namespaces/%s/widgets/two", first.Group, l.Unique)
	l.Calls.Before = func(call string) {
		if call == written && l.Get(first, l.Unique, "one") != nil {
			atSecond.Do(func() { l.Unserve("widgets") })
		}
	}
	var progress apply.Progress
	l.Eventually("the rollout", func() bool {
		progress = lab.Must(rollout.Advance(t.Context(), l.Target))(t)
		return progress.Complete || len(progress.Refused) > 0
	})
	if len(progress.Refused) > 0 {
		t.Fatalf("refused: %v", progress.Refused)
	}
	if drift := l.Drift(progress.Inventory); len(drift) > 0 {
		t.Errorf("after the rollout: %v", drift)
	}
}
