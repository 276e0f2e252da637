package addoninstallation_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/controllers/addoninstallation"
	"github.com/trellis-addons/trellis/pkg/install/revision"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/golden"
	kit "github.com/trellis-addons/trellis/test/world"
)

// chronicle has the records written between the calls to the user cluster.
type chronicle struct {
	addoninstallation.Records
	heard *overheard
}

func (c chronicle) SaveIntent(ctx context.Context, namespace string, record *revision.Record) error {
	c.heard.note("record intent", record)
	return c.Records.SaveIntent(ctx, namespace, record)
}

func (c chronicle) SaveApplied(ctx context.Context, namespace string, record *revision.Record) error {
	c.heard.note("record as applied", record)
	return c.Records.SaveApplied(ctx, namespace, record)
}

func (o *overheard) note(what string, record *revision.Record) {
	line := fmt.Sprintf("%s: revision %d, version %s", what, record.Revision, record.Version)
	if back := record.Rollback; back != nil {
		line += fmt.Sprintf(", which is revision %d again after %d failed", back.To, back.Failed)
	}
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.calls = append(o.calls, line)
}

// writesSinceThen are the records and the writing calls, without consecutive repetitions. Consecutive patches are sent
// concurrently, so they are sorted.
func (o *overheard) writesSinceThen() []string {
	writes := slices.DeleteFunc(o.sinceThen(), func(call string) bool { return strings.HasPrefix(call, "GET ") })
	for rest := writes; len(rest) > 0; {
		end := slices.IndexFunc(rest, func(write string) bool { return !strings.HasPrefix(write, "PATCH ") })
		if end < 0 {
			end = len(rest)
		}
		slices.Sort(rest[:end])
		rest = rest[min(end+1, len(rest)):]
	}
	return slices.Compact(writes)
}

// expectHealthy waits until a revision is on record as healthy, and has nothing left to prune.
func (w *world) expectHealthy(object *kubermaticv1.AddonInstallation, number int) {
	w.t.Helper()
	records := revision.NewRecords(w.seed, w.seed, revision.NewSeal([]byte("key")))
	owner := ownership.Owner{ClusterUID: w.cluster.UID, Installation: object.Name}
	expect.Eventually(w.t, expect.Patience, func() error {
		record, err := records.Load(w.t.Context(), w.namespace, owner)
		if err != nil {
			return err
		}
		if record == nil || record.Revision != number || !record.Healthy || len(record.Superseded) > 0 {
			return fmt.Errorf("revision %d is not on record as healthy, with everything pruned: %q", number, w.revisions(object))
		}
		return nil
	})
}

// An atomic upgrade that never gets healthy, as a story of the records and the writes to the user cluster. It fails if
// a revision is written before its intent is recorded, or if a rollback writes, deletes or records in another order.
func TestRollbackStory(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.renderers, w.clock = bothMethods(), kit.RunningClock(t)
	heard := w.overhear()
	w.records = func(records addoninstallation.Records) addoninstallation.Records { return chronicle{records, heard} }
	w.start()
	first := w.atomic("1.0.0", "", "")
	w.offer("story", kubermaticv1.CatalogueCustom, first)
	object := w.install("story", "")
	story := golden.NewStory("A rollback: what is recorded, and what is written to the user cluster", object.Spec.TargetNamespace, "NAMESPACE")
	w.ready(object)
	w.expectHealthy(object, 1)
	story.Add("Version 1.0.0 is installed.", heard.writesSinceThen()...)
	w.offer("story", kubermaticv1.CatalogueCustom, first, w.atomic("2.0.0", `,"replicas":1`, extra))
	w.expectRevisions(object, "1 Applied 1.0.0", "2 Applied 2.0.0")
	w.expectBack(object)
	w.expectHealthy(object, 3)
	story.Add("Version 2.0.0, with one more ConfigMap, never gets healthy.", heard.writesSinceThen()...)
	story.Match(t, "testdata/rollback.golden")
}
