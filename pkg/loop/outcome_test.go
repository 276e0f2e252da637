package loop_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"

	"github.com/trellis-addons/trellis/pkg/loop"
)

func TestRequeueAfter(t *testing.T) {
	for _, test := range []struct {
		why     string
		outcome loop.Outcome
		want    time.Duration
	}{
		{"done for good", loop.Done{}, 0},
		{"done, with a look later", loop.Done{Recheck: time.Minute}, time.Minute},
		{"a retry without a wait of its own is never forgotten", loop.RetryAt{}, time.Second},
		{"a retry with its own wait", loop.RetryAt{After: time.Hour}, time.Hour},
		{"waiting for an event only", loop.Waiting{}, 0},
		{"stalled until an edit", loop.Stalled{}, 0},
		{"saved, and the event of that write begins the next pass", loop.Checkpoint{}, 0},
		{"saved, and nothing else begins the next pass", loop.Checkpoint{AtOnce: true}, time.Millisecond},
		{"another worker's", loop.NotMine{}, 0},
	} {
		t.Run(test.why, func(t *testing.T) {
			if got := loop.RequeueAfter(test.outcome); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// Red when Finish writes the status of what is not the controller's: it has no client to do so.
func TestWhatIsNotMineIsNotWritten(t *testing.T) {
	object := &v1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Name: "of-another-worker"}}
	pass := loop.Start(nil, object)
	object.Status.Revision = "changed"
	result, err := pass.Finish(t.Context(), loop.NotMine{})
	if err != nil || !result.IsZero() {
		t.Errorf("got %v, %v", result, err)
	}
}
