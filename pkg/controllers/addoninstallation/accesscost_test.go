package addoninstallation_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/controllers/addoninstallation"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/gate"
	kit "github.com/trellis-addons/trellis/test/world"
)

// The cost of a credential, compared with the same add-on without one.

// bill counts calls by path: writes on the seed, and writes and reads in the user cluster.
type bill struct {
	seed, user int
	reads      map[string]int
}

func (b bill) String() string {
	return fmt.Sprintf("%d writes on the seed, %d in the user cluster, reads of %v there", b.seed, b.user, b.reads)
}

// counted makes the controller reach seed and user cluster through gates. The returned function adds the calls since
// its previous call to a bill, without those about leases and events.
func (w *world) counted() func(*bill) {
	w.t.Helper()
	passed, user := w.gated()
	seed := &overheard{}
	w.through = passed.Config("seed")
	passed.Watch("seed", gate.Guard{Before: seed.hear})
	return func(b *bill) {
		if b.reads == nil {
			b.reads = map[string]int{}
		}
		for _, call := range seed.sinceThen() {
			if !strings.HasPrefix(call, "GET ") && !strings.Contains(call, "/events") && !strings.Contains(call, "/leases") {
				b.seed++
			}
		}
		for _, call := range user.sinceThen() {
			if path, isRead := strings.CutPrefix(call, "GET "); isRead {
				b.reads[path]++
			} else {
				b.user++
			}
		}
	}
}

// TestWhatATokenCosts: a first installation costs at most six more writes on the seed and one in the user cluster, a
// renewal three and one. Ten idle comparisons with the record cost no write, and no additional read in the user
// cluster.
func TestWhatATokenCosts(t *testing.T) {
	t.Parallel()
	cost := map[string]map[string]*bill{}
	for _, which := range []string{"with", "without"} {
		w := agentWorld(t)
		w.clock, w.driftInterval = kit.RunningClock(t), time.Minute
		seconds := &atomic.Int64{}
		w.keeper = func(keeper addoninstallation.Access) addoninstallation.Access { return later{keeper, seconds} }
		asked := []kubermaticv1.Access{tokenFor("hub", reading("configmaps"))}
		if which == "without" {
			asked = nil
		}
		w.offer("agent", kubermaticv1.CatalogueCustom, w.agent("1.0.0", asked...))
		calls, began := w.counted(), w.clock.Now()
		w.start()
		object := w.install("agent", "")
		w.ready(object)
		cost[which] = map[string]*bill{"install": {}, "rounds": {}, "renewal": {}}
		calls(cost[which]["install"])
		w.rest(object, 10, calls, cost[which]["rounds"])
		if which == "without" {
			continue
		}
		was := hubSecret(object, "hub")
		expect.Read(t, w.seed, was)
		calls(&bill{})
		seconds.Store(int64((55*time.Minute - w.clock.Since(began)).Seconds())) // the credential lasts an hour
		w.clock.Step(w.driftInterval)
		w.label(object)
		expect.Object(t, w.seed, hubSecret(object, "hub"), func(now *corev1.Secret) error {
			if string(now.Data["token"]) == string(was.Data["token"]) {
				return errors.New("the token is the former")
			}
			return nil
		})
		expect.Object(t, w.seed, object, func(object *kubermaticv1.AddonInstallation) error {
			if left := time.Until(object.Status.Access[0].Expires.Time); left < 55*time.Minute {
				return fmt.Errorf("status.access ends in %s", left)
			}
			return nil
		})
		calls(cost[which]["renewal"])
	}
	with, without := cost["with"], cost["without"]
	t.Logf("first installation: %s; without access: %s", with["install"], without["install"])
	t.Logf("ten rounds: %s; without access: %s", with["rounds"], without["rounds"])
	t.Logf("renewal: %s", with["renewal"])
	if with["install"].seed > without["install"].seed+6 || with["install"].user != without["install"].user+1 {
		t.Error("the first installation costs more than six writes on the seed and one in the user cluster")
	}
	if with["rounds"].seed+with["rounds"].user > 0 || len(with["rounds"].reads) != len(without["rounds"].reads) {
		t.Error("rest costs something")
	}
	for path, count := range with["rounds"].reads {
		if count > 11 {
			t.Errorf("%s was read %d times in ten rounds", path, count)
		}
	}
	if with["renewal"].seed > 3 || with["renewal"].user != 1 {
		t.Error("a renewal costs more than three writes on the seed and one in the user cluster")
	}
}

// rest makes a number of comparisons with the record, one after the other.
func (w *world) rest(object *kubermaticv1.AddonInstallation, rounds int, calls func(*bill), of *bill) {
	w.t.Helper()
	const compared = "/api/v1/configmaps"
	for round := range rounds {
		w.clock.Step(w.driftInterval * 5 / 4) // an interval has up to a tenth of jitter
		w.label(object)
		expect.Eventually(w.t, expect.Patience, func() error {
			if calls(of); of.reads[compared] <= round {
				return fmt.Errorf("%d of %d rounds were made, reading %v", of.reads[compared], round+1, of.reads)
			}
			return nil
		})
	}
}
