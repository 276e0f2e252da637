package apply_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trellis-addons/trellis/pkg/apply"
	"github.com/trellis-addons/trellis/pkg/ownership"
	"github.com/trellis-addons/trellis/test/hostile"
)

const settingsAndClaims = settings + `
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: one}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: two}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: three}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}`

func expectMisbehaviour(t *testing.T, what string, err error) {
	t.Helper()
	var misbehaved *apply.MisbehavesError
	switch {
	case !errors.As(err, &misbehaved):
		t.Errorf("%s: %v, expected a MisbehavesError", what, err)
	case len(err.Error()) > 600:
		t.Errorf("%s: the error has %d bytes", what, len(err.Error()))
	}
}

// Red when accept takes the fields of an answer over whatever their size: each record would have them.
func TestFieldsThatWereNotSentAreNotRecorded(t *testing.T) {
	l, server := newHostileLab(t)
	l.namespace()
	objects := l.prepare(settings)
	server.SetDose(hostile.ModeNamed("lying-fields"), hostile.Dose{Size: 50_000})
	progress := l.rollout(objects, nil, apply.RolloutOptions{})
	if !progress.Complete || len(progress.Misbehaved) != len(objects) {
		t.Fatalf("the rollout is complete: %v; told about %v of %d objects", progress.Complete, reasons(progress.Misbehaved), len(objects))
	}
	size := 0
	for _, entry := range progress.Inventory {
		size += len(entry.Fields)
	}
	if size > 10_000 {
		t.Errorf("%d bytes of fields are on record", size)
	}
	server.Set(hostile.Truth)
	s := apply.NewSurvey(0, time.Now)
	if drift := must(s.Drifted(t.Context(), l.target, l.owner, progress.Inventory))(t); len(drift) > 0 {
		t.Errorf("nothing changed, and %v drifted", drift)
	}
	l.delete(configMaps, l.name, "settings")
	drift := must(s.Drifted(t.Context(), l.target, l.owner, progress.Inventory))(t)
	if len(drift) != 1 || drift[0].Reason != apply.DriftMissing {
		t.Errorf("one object is gone, and %v drifted", drift)
	}
}

// Red when the UID of an answer is believed whatever it is, of an object or of a hook; or when an answer may be about another
// object.
func TestIdentitiesThatCanNotBeAreRefused(t *testing.T) {
	for mode, known := range map[string]bool{"lying-uid": false, "other-object": true} {
		t.Run(mode, func(t *testing.T) {
			l, server := newHostileLab(t)
			l.namespace()
			objects, inventory := l.prepare(settings), ownership.Inventory(nil)
			if known {
				inventory = l.install(objects, nil)
				for i := range inventory {
					inventory[i].UID = "" // as planned: it is looked for
				}
			}
			server.SetDose(hostile.ModeNamed(mode), hostile.Dose{Size: 50_000})
			progress, err := apply.NewRollout(l.owner, objects, inventory, apply.RolloutOptions{Adopt: known}).Advance(t.Context(), l.target)
			expectMisbehaviour(t, "a rollout", err)
			for _, entry := range progress.Inventory {
				if entry.UID != "" {
					t.Errorf("%s counts as ours by UID %.50q", entry.Key, entry.UID)
				}
			}
			hook := apply.Hook{Object: l.prepare(strings.ReplaceAll(settings, "settings", "hook"))[0], Run: "run", TargetNamespace: l.name}
			if known {
				_, err = apply.LookAtHook(t.Context(), l.target, l.owner, apply.Hook{Object: objects[0], TargetNamespace: l.name})
			} else {
				_, _, err = apply.MakeHook(t.Context(), l.target, l.owner, hook)
			}
			expectMisbehaviour(t, "a hook", err)
		})
	}
}

// Red, in the order of the modes, when pages are not counted, when tokens may come again, when what is kept of items is not
// counted by number, or by size. For all of them: when the next installation of the cluster has the same list made again.
func TestListsOfHostileClustersAreEndedForAllInstallations(t *testing.T) {
	for mode, dose := range map[string]int{"endless-pages": 0, "same-page": 0, "empty-items": 1 << 20, "long-name": 30 << 20} {
		t.Run(mode, func(t *testing.T) {
			l, server := newHostileLab(t)
			l.namespace()
			inventory := l.install(l.prepare(settingsAndClaims), nil)
			server.SetDose(hostile.ModeNamed(mode), hostile.Dose{Size: dose})
			s := apply.NewSurvey(patience, time.Now)
			for range 2 {
				_, err := s.Drifted(t.Context(), l.target, l.owner, inventory)
				expectMisbehaviour(t, "drift", err)
			}
			if lists := server.Count("requests"); lists > 2*400 {
				t.Errorf("%d pages of two kinds were asked for", lists)
			}
			before := server.Count("requests")
			_, err := s.Drifted(t.Context(), l.target, ownership.Owner{ClusterUID: "5f3d", Installation: "another"}, inventory)
			expectMisbehaviour(t, "drift of another", err)
			if more := server.Count("requests") - before; more > 0 {
				t.Errorf("another installation asked %d times in the same round", more)
			}
			if mode != "long-name" { // the names of other objects are not kept for health
				_, err = apply.Assess(t.Context(), l.target, l.owner, inventory)
				expectMisbehaviour(t, "health", err)
			}
		})
	}
}

// Red when an installation waits for the list that another one makes after its own pass has ended.
func TestWaitingForAListEndsWithTheContext(t *testing.T) {
	l, server := newHostileLab(t)
	l.namespace()
	inventory := l.install(l.prepare(settings), nil)
	server.Set(hostile.ModeNamed("slow-pages"))
	s := apply.NewSurvey(patience, time.Now)
	first, end := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := s.Drifted(first, l.target, l.owner, inventory)
		ended <- err
	}()
	l.eventually("the first list has begun", func() bool { return server.Count("requests") > 0 })
	second, stop := context.WithCancel(t.Context())
	stop()
	if _, err := s.Drifted(second, l.target, l.owner, inventory); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting ended with %v", err)
	}
	end()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the first list ended with %v", err)
	}
}

// Red when what a repair puts back as it was counts as something new to record.
func TestRepairedAsBeforeIsNothingNewToRecord(t *testing.T) {
	l := newLab(t)
	l.namespace()
	objects := l.prepare(settings)
	inventory := l.install(objects, nil)
	l.edit(configMaps, "settings", `{data: {color: red}}`)
	drift := must(apply.NewSurvey(0, time.Now).Drifted(t.Context(), l.target, l.owner, inventory))(t)
	fixed := must(apply.Repair(t.Context(), l.target, l.owner, keysOf(drift), apply.Applied{Objects: objects, Inventory: inventory}))(t)
	if diff := cmp.Diff(inventory, fixed.Inventory); diff != "" || fixed.Written != 1 {
		t.Errorf("%d written; the inventory changed (-before +after):\n%s", fixed.Written, diff)
	}
}

// Red when a conflict names what was never sent and each name is looked up.
func TestConflictsAboutFieldsThatWereNotSentAreRefused(t *testing.T) {
	l, server := newHostileLab(t)
	l.namespace()
	objects := l.prepare(settings)
	inventory := l.install(objects, nil)
	server.SetDose(hostile.ModeNamed("many-conflicts"), hostile.Dose{Size: 5000})
	_, err := apply.NewRollout(l.owner, objects, inventory.Doubted(), apply.RolloutOptions{Adopt: true}).Advance(t.Context(), l.target)
	expectMisbehaviour(t, fmt.Sprintf("%d objects", len(objects)), err)
}
