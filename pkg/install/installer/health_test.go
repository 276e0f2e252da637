package installer

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue/health"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/install/revision"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
)

// agent is an add-on that renews a Lease while it is alive, reconciled at times that the test sets.
type agent struct {
	*testing.T
	client client.Client
	lease  *coordinationv1.Lease
	run    *Run
	began  time.Time
}

func newAgent(t *testing.T) *agent {
	t.Helper()
	config := fleet.Shared().Cluster("both").Config
	c, err := client.New(config, client.Options{})
	expect.NoError(t, err)
	reads, err := dynamic.NewForConfig(config)
	expect.NoError(t, err)
	a := &agent{T: t, client: c, began: time.Now()}
	a.lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "agent"}}
	record := &revision.Record{
		Addon: "agent", State: revision.StateApplied, TargetNamespace: "default", Time: metav1.NewTime(a.began), Timeout: metav1.Duration{Duration: time.Minute},
		Health: &v1.HealthCheck{Mode: v1.HealthByLease, Lease: &v1.HealthLease{StaleAfter: &metav1.Duration{Duration: 10 * time.Minute}}},
	}
	kept := &fakeRecords{record: record}
	run := (&Installer{Reads: kept, Writes: kept, Interval: time.Hour}).NewRun(&State{Loaded: true, Record: record}, "cluster-a", Asked{}, Seed{})
	run.Connection = &cluster.Connection{Dynamic: reads}
	a.run = &run
	return a
}

// renew writes the Lease, and creates it if there is none.
func (a *agent) renew(at time.Time) {
	a.Helper()
	renewed := metav1.NewMicroTime(at)
	err := a.client.Get(a.Context(), client.ObjectKeyFromObject(a.lease), a.lease)
	a.lease.Spec.RenewTime = &renewed
	if err != nil {
		err = a.client.Create(a.Context(), a.lease)
	} else {
		err = a.client.Update(a.Context(), a.lease)
	}
	expect.NoError(a, err)
}

// expect checks the outcome of a reconciliation at a time after the beginning, and that the next one is soon enough.
func (a *agent) expect(after time.Duration, reason string, within time.Duration) {
	a.Helper()
	a.run.Now = a.began.Add(after)
	stop := a.run.Assess(a.Context())
	got, next := "", a.run.NextSurvey()
	if stop != nil {
		got, next = stop.Reason, stop.Recheck
	}
	if got != reason || next > within {
		a.Errorf("after %s it says %q (%+v), and looks again within %s; want %q and %s", after, got, stop, next, reason, within)
	}
}

// AG21: Fails if an unchanged Lease keeps its add-on healthy, or a renewed one does not; if a deleted one is stale at
// once; if a renewal by the previous revision counts for the next one; and if it is read more often than twice within
// the time after which it is stale.
func TestALeaseShowsThatAnAddonIsAlive(t *testing.T) {
	a := newAgent(t)
	a.run.State.nextSurvey = a.began.Add(time.Hour)
	const looks = 5 * time.Minute
	a.expect(0, v1.ReasonProgressing, SlowestRecheck)
	a.expect(2*time.Minute, v1.ReasonLeaseMissing, SlowestRecheck)
	a.renew(a.began.Add(time.Hour)) // by a clock that is wrong
	a.expect(3*time.Minute, "", looks)
	beat := a.run.State.beat
	a.expect(4*time.Minute, "", looks-time.Minute)
	if beat != a.run.State.beat {
		t.Error("it is read before it has to be")
	}
	a.expect(9*time.Minute, "", looks)
	a.expect(14*time.Minute, v1.ReasonLeaseStale, looks)
	a.renew(a.began) // back
	a.expect(15*time.Minute, "", looks)
	next := *a.run.Record()
	next.Time = metav1.NewTime(a.began.Add(15 * time.Minute))
	a.run.State.begin(&next)
	a.run.State.health, a.run.State.beat = nil, health.NewBeat() // as in RecordApplied: the rollout may have stopped renewals
	a.expect(15*time.Minute, v1.ReasonProgressing, SlowestRecheck)
	a.renew(a.began.Add(15 * time.Minute))
	a.expect(16*time.Minute, "", looks)
	expect.Delete(t, a.client, a.lease)
	a.expect(21*time.Minute, v1.ReasonProgressing, SlowestRecheck)
	a.expect(23*time.Minute, v1.ReasonLeaseMissing, SlowestRecheck)
}

// TestALeaseCountsBesideObjects fails if an assessment of a Lease alone loses the objects, or counts itself twice.
func TestALeaseCountsBesideObjects(t *testing.T) {
	a := newAgent(t)
	a.run.State.nextSurvey = a.began.Add(time.Hour)
	a.run.Record().Inventory = inventoryOf("web")
	a.renew(a.began)
	defer func() { _ = a.client.Delete(t.Context(), a.lease) }()
	for _, after := range []time.Duration{0, 5 * time.Minute, 10 * time.Minute} {
		a.renew(a.began.Add(after))
		a.expect(after, "", 5*time.Minute)
		if health := a.run.Health; health.Total != len(inventoryOf("web"))+1 || health.Healthy != health.Total {
			t.Errorf("after %s there are %+v", after, *health)
		}
	}
}
