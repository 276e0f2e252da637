package addoninstallation

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-addons/trellis/pkg/revision"
)

// Red when the time of an outage, of a pause or of a process that did not run counts for an atomic upgrade: it would be rolled back
// at the first look after it.
func TestOnlyTimeThatIsWatchedMakesAnUpgradeOverdue(t *testing.T) {
	now := time.Now()
	for _, test := range []struct {
		why              string
		begun, watched   time.Duration
		healthy, nobodys bool
		want             bool
	}{
		{why: "its time is not over", begun: 9 * time.Minute, watched: time.Hour},
		{why: "its time is over", begun: 11 * time.Minute, watched: time.Hour, want: true},
		{why: "contact came back a moment ago", begun: time.Hour, watched: time.Second},
		{why: "contact came back and its time went by again", begun: time.Hour, watched: 11 * time.Minute, want: true},
		{why: "there is no contact", begun: time.Hour, nobodys: true},
		{why: "it was healthy once", begun: time.Hour, watched: time.Hour, healthy: true},
	} {
		f := &facts{now: now, memory: &memory{watched: now.Add(-test.watched), record: &revision.Record{
			Revision: 2, LastGood: 1, Atomic: true, Healthy: test.healthy,
			Time: metav1.NewTime(now.Add(-test.begun)), Timeout: metav1.Duration{Duration: 10 * time.Minute},
		}}}
		if test.nobodys {
			f.memory.watched = time.Time{}
		}
		if got := isOverdue(f); got != test.want {
			t.Errorf("%s: got %t, want %t", test.why, got, test.want)
		}
	}
}
