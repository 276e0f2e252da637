package addoninstallation_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/controllers/addoninstallation"
	"github.com/trellis-addons/trellis/pkg/install/revision"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/given"
	"github.com/trellis-addons/trellis/test/hostile"
	kit "github.com/trellis-addons/trellis/test/world"
)

// behindHostile makes the Cluster's kubeconfig name an API server that may lie.
func (w *world) behindHostile() *hostile.Server {
	w.t.Helper()
	server := hostile.New(w.t, fleet.Shared().Cluster("both"))
	secret := given.Kubeconfig(w.namespace, server.Kubeconfig())
	expect.Update(w.t, w.seed, secret)
	return server
}

// TestAListWithoutEndIsTheClustersMisbehaviour fails if an endless list counts as an ordinary failure, or has other
// effects.
func TestAListWithoutEndIsTheClustersMisbehaviour(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server := w.behindHostile()
	w.start()
	w.publish("listed", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"})
	object := w.install("listed", "")
	w.expectSummary(object, "True", kubermaticv1.ReasonReady, "")
	server.Set(hostile.ModeNamed("same-page"))
	w.lookAgain(object)
	w.expectSummary(object, "Unknown", kubermaticv1.ReasonClusterMisbehaves, "repeats an earlier page")
	for kind, reason := range map[string]string{
		kubermaticv1.ConditionDrifted: kubermaticv1.ReasonNoDrift, kubermaticv1.ConditionHealthy: kubermaticv1.ReasonHealthy,
	} {
		if says := w.condition(object, kind); says != reason {
			t.Errorf("%s says %s, expected %s as before", kind, says, reason)
		}
	}
}

// TestRecordsDoNotGrowByUntrueFields fails if untrue fields of an answer are recorded, or dropped without a message.
func TestRecordsDoNotGrowByUntrueFields(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server := w.behindHostile()
	server.SetDose(hostile.ModeNamed("lying-fields"), hostile.Dose{Size: 50_000}) // a different object may have that many
	w.start()
	w.publish("grown", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"})
	object := w.install("grown", "")
	w.expectSummary(object, "True", kubermaticv1.ReasonReady, "")
	w.expectEvent(kubermaticv1.ReasonClusterMisbehaves, object)
	var records corev1.SecretList
	expect.List(t, w.seed, &records, client.InNamespace(w.namespace))
	size := 0
	for i := range records.Items {
		for _, text := range records.Items[i].Data {
			size += len(text)
		}
	}
	if size > 100_000 {
		t.Errorf("the Secrets of the cluster's namespace have %d bytes", size)
	}
}

// condition is the reason of a condition.
func (w *world) condition(object *kubermaticv1.AddonInstallation, kind string) string {
	w.t.Helper()
	expect.Read(w.t, w.seed, object)
	for _, condition := range object.Status.Conditions {
		if condition.Type == kind {
			return condition.Reason
		}
	}
	return ""
}

// savings counts the records that are written.
type savings struct {
	addoninstallation.Records
	count *atomic.Int32
}

func (s savings) SaveApplied(ctx context.Context, namespace string, record *revision.Record) error {
	s.count.Add(1)
	return s.Records.SaveApplied(ctx, namespace, record)
}

// TestWhatIsPutBackAsItWasIsNotRecordedAgain fails if each repair writes the record, even without a change of it.
func TestWhatIsPutBackAsItWasIsNotRecordedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.clock = kit.RunningClock(t)
	saved := &atomic.Int32{}
	w.records = func(records addoninstallation.Records) addoninstallation.Records { return savings{records, saved} }
	w.start()
	w.publish("repaired", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"})
	object := w.install("repaired", "")
	w.expectSummary(object, "True", kubermaticv1.ReasonReady, "")
	repair := func() (second int64) {
		settings := w.settings(object)
		settings.Data = map[string]string{"version": "edited"}
		expect.Update(t, w.seed, settings)
		w.clock.Step(time.Hour) // successive edits would count as a fight over the object
		w.afterAnother(object)
		settings = w.settings(object)
		if settings.Data["version"] != "1.0.0" {
			t.Fatalf("the settings are not put back: %v", settings.Data)
		}
		owner := ownership.Owner{ClusterUID: w.cluster.UID, Installation: object.Name}.FieldManager()
		for _, entry := range settings.ManagedFields {
			if entry.Manager == owner {
				second = entry.Time.Unix()
			}
		}
		return second
	}
	// The record has the second of the last write, so two repairs in the same second are compared.
	expect.Eventually(t, expect.Patience, func() error {
		first, before := repair(), saved.Load()
		if repair() != first {
			return errors.New("the second repair was in another second")
		}
		if after := saved.Load(); after != before {
			t.Errorf("the record was written %d times", after-before)
		}
		return nil
	})
	w.expectEvent(kubermaticv1.EventRepaired, object)
}
