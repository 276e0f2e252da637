package addonset_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/utils/clock"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/standins"
)

// ahead is a clock that is wrong by an hour.
type ahead struct{ clock.RealClock }

// Now implements clock.PassiveClock.
func (ahead) Now() time.Time { return time.Now().Add(time.Hour) }

// Since implements clock.PassiveClock.
func (a ahead) Since(at time.Time) time.Duration { return a.Now().Sub(at) }

// TestAClockThatIsSetBackHoldsNothingUp (RS39): A set that rolled by a clock that was an hour ahead halts at a broken
// canary, and rolls its fix, once the clock is right. The test fails when a revision starts at the time of the
// previous one, an hour from now, after the clock was ahead.
func TestAClockThatIsSetBackHoldsNothingUp(t *testing.T) {
	w := newWorld(t, 4, 1, standins.Rule{Act: standins.Act{Takes: 100 * time.Millisecond}})
	w.offers("web", "1.0.0")
	w.clock = ahead{}
	of := w.write(w.set("tools"))
	stop := w.start()
	w.open(of, 2)
	w.says(of, v1.ReasonComplete, current(4))
	stop()

	w.clock = nil
	w.player.Direct(t, standins.Rule{Of: standins.AtVersion("web", "1.1.0"), Act: standins.Act{Fate: standins.RollsBack}})
	w.offers("web", "1.0.0", "1.1.0")
	w.start()
	w.says(of, v1.ReasonHalted)
	if at := w.at("1.1.0"); !slices.Equal(at, w.names[:1]) {
		t.Errorf("%q have the broken version", at)
	}
	w.offers("web", "1.0.0", "1.1.1")
	w.says(of, v1.ReasonRollingOut)
	w.open(of, 2)
	expect.Eventually(t, expect.Patience, func() error {
		if at := w.at("1.1.1"); len(at) != 4 {
			return fmt.Errorf("%q have the fix", at)
		}
		return nil
	})
	w.says(of, v1.ReasonComplete, current(4))
}
