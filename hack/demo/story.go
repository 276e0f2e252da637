package main

import (
	"context"
	"fmt"
	"time"

	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/sandbox"
)

// story is the demo's course.
type story struct {
	box      *sandbox.Sandbox
	progress *fleet.Progress
	phases   []sandbox.Phase
	bars     []bar
	before   map[string]snapshot
}

// bar is a measured time with its limit.
type bar struct {
	name          string
	median, limit time.Duration
}

// The clusters that the story plays in, one of either minor and on either seed.
var older, newer = sandbox.UserClusters()[0], sandbox.UserClusters()[3]

func (s *story) tell(ctx context.Context) error {
	for _, step := range []struct {
		name string
		run  func(context.Context) error
	}{
		{"the catalogue reaches both seeds", s.reachesSeeds},
		{"a version for one minor is offered to its clusters only", s.offeredWhereItFits},
		{"a custom resource that sorts before its CRD and namespace is Ready at the first attempt", s.installGreeter},
		{"a Helm add-on is Ready and shown by helm list", s.installWeb},
		{"a changed value rolls out", s.changeValues},
		{"an edit made by hand is put back", s.editByHand},
		{"deletion removes what was applied and nothing else", s.remove},
		{"a set tells what it would do", s.setPreview},
		{"it is installed, first where the ring says so", s.setInstalled},
		{"a new version in range rolls by itself", s.setUpgraded},
		{"a broken version halts where it was first", s.setHalted},
		{"the fix rolls", s.setFixed},
		{"a cluster that is not selected any more is as before", s.setUnselected},
		{"the set is deleted, and user clusters are clean", s.setDeleted},
		{"how long an edit takes to all clusters", s.measureCatalogue},
		{"how long an installation takes to its first object", s.measureInstallation},
	} {
		begin := time.Now()
		s.progress.Printf("* %s", step.name)
		if err := step.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		s.phases = append(s.phases, sandbox.Phase{Name: step.name, Time: time.Since(begin)})
	}
	return nil
}

// memoryLimit is the most memory, in bytes, that all processes may take together.
const memoryLimit = 8 << 30

// judge returns an error when a measured time, or the peak of memory in bytes, is above its limit.
func (s *story) judge(peak int64) error {
	for _, bar := range s.bars {
		if bar.median > bar.limit {
			return fmt.Errorf("%s: median %s, limit %s", bar.name, bar.median.Round(time.Millisecond), bar.limit)
		}
	}
	if peak > memoryLimit {
		return fmt.Errorf("memory of all processes: %d MiB at its peak, limit %d MiB", peak>>20, memoryLimit>>20)
	}
	s.progress.Printf("the demo is green")
	return nil
}
