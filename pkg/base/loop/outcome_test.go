package loop_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"

	"github.com/trellis-addons/trellis/pkg/base/loop"
)

func TestRequeueAfter(t *testing.T) {
	for _, test := range []struct {
		why     string
		outcome *loop.Outcome
		want    time.Duration
	}{
		{"done for good", &loop.Outcome{Kind: loop.Done}, 0},
		{"done, with a look later", &loop.Outcome{Kind: loop.Done, Recheck: time.Minute}, time.Minute},
		{"a retry without a wait of its own is never forgotten", &loop.Outcome{Kind: loop.RetryAt}, time.Second},
		{"a retry with its own wait", &loop.Outcome{Kind: loop.RetryAt, Recheck: time.Hour}, time.Hour},
		{"waiting for an event only", &loop.Outcome{Kind: loop.Waiting}, 0},
		{"stalled until an edit", &loop.Outcome{Kind: loop.Stalled}, 0},
		{"saved, and the event of that write begins the next pass", &loop.Outcome{Kind: loop.Checkpoint}, 0},
		{"saved, and nothing else begins the next pass", &loop.Outcome{Kind: loop.Checkpoint, Recheck: loop.AtOnce}, time.Millisecond},
		{"another worker's", &loop.Outcome{Kind: loop.NotMine}, 0},
	} {
		t.Run(test.why, func(t *testing.T) {
			if got := loop.RequeueAfter(test.outcome); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// TestWhatIsNotMineIsNotWritten fails when Finish writes the status of an object that does not belong to the
// controller: it has no client to do so.
func TestWhatIsNotMineIsNotWritten(t *testing.T) {
	object := &v1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Name: "of-another-worker"}}
	run := loop.Start(nil, object)
	object.Status.Revision = "changed"
	result, err := run.Finish(t.Context(), &loop.Outcome{Kind: loop.NotMine})
	if err != nil || !result.IsZero() {
		t.Errorf("got %v, %v", result, err)
	}
}
