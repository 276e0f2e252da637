package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

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
	// first and last are the user clusters that most of the story is about, one on each seed. With two minors, the first one
	// has the older.
	first, last sandbox.UserCluster
}

// newStory is a story on a sandbox that runs.
func newStory(box *sandbox.Sandbox, progress *fleet.Progress) *story {
	clusters := box.UserClusters()
	return &story{box: box, progress: progress, before: map[string]snapshot{}, first: clusters[0], last: clusters[len(clusters)-1]}
}

// bar is a measured time, of several the median, with its limit.
type bar struct {
	name        string
	took, limit time.Duration
}

// step of the story, by what it shows.
type step struct {
	name string
	run  func(context.Context) error
}

func (s *story) report(ctx context.Context) error {
	alone := []step{
		{"the catalogue reaches both seeds", s.reachesSeeds},
		{"a version that needs a newer Kubernetes is offered where it fits only", s.offeredWhereItFits},
		{"the query endpoint says what a cluster on a newer Kubernetes would be offered", s.queried},
		{"a custom resource that sorts before its CRD and namespace is Ready at the first attempt", s.installGreeter},
		{"a Helm add-on is Ready and shown by helm list", s.installWeb},
		{"a changed value rolls out", s.changeValues},
		{"an edit made by hand is put back", s.editByHand},
		{"deletion removes what was applied and nothing else", s.remove},
	}
	bySet := []step{
		{"a set previews its changes", s.setPreview},
		{"the set is installed, first in ring 0", s.setInstalled},
		{"a new version in range rolls by itself", s.setUpgraded},
		{"a broken version stops at the first cluster", s.setHalted},
		{"the fix rolls", s.setFixed},
		{"a cluster that is no longer selected returns to its earlier state", s.setUnselected},
		{"the set is deleted, and user clusters are clean", s.setDeleted},
	}
	last := []step{
		{"how long an edit takes to all clusters", s.measureCatalogue},
		{"how long an installation takes to its first object", s.measureInstallation},
		{"leaders are killed at work, and standby processes finish it", s.leadersKilled},
	}
	if _, err := s.follow(ctx, alone); err != nil {
		return err
	}
	took, err := s.follow(ctx, bySet)
	if err != nil {
		return err
	}
	s.progress.Printf("the story of a set took %.1f s, limit %.0f s", took.Seconds(), setsLimit.Seconds())
	s.bars = append(s.bars, bar{"the story of a set", took, setsLimit})
	_, err = s.follow(ctx, last)
	return err
}

// each does something in clusters, in all at once.
func each(
	ctx context.Context, clusters []sandbox.UserCluster, do func(context.Context, sandbox.UserCluster) error,
) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, cluster := range clusters {
		group.Go(func() error { return do(ctx, cluster) })
	}
	return group.Wait()
}

// both are the clusters that most of the story is about.
func (s *story) both() []sandbox.UserCluster { return []sandbox.UserCluster{s.first, s.last} }

// reportUpgrade is the story of an upgrade, on a sandbox with Cluster API.
func (s *story) reportUpgrade(ctx context.Context) error {
	_, err := s.follow(ctx, s.upgradeSteps())
	return err
}

// follow steps in their order, and say how long they took together.
func (s *story) follow(ctx context.Context, steps []step) (took time.Duration, err error) {
	for _, step := range steps {
		begin := time.Now()
		s.progress.Printf("* %s", step.name)
		if err := step.run(ctx); err != nil {
			return took, fmt.Errorf("%s: %w", step.name, err)
		}
		phase := sandbox.Phase{Name: step.name, Time: time.Since(begin)}
		s.phases, took = append(s.phases, phase), took+phase.Time
	}
	return took, nil
}

// setsLimit is the most that the steps of a set may add to the story. A busy machine keeps it too.
const setsLimit = 3 * time.Minute

// memoryLimit is the most memory, in bytes, that all processes may take together.
const memoryLimit = 8 << 30

// evaluate returns an error when a measured time, or the peak of memory in bytes, is above its limit.
func (s *story) evaluate(peak int64) error {
	for _, bar := range s.bars {
		if bar.took > bar.limit {
			return fmt.Errorf("%s: it took %s, limit %s", bar.name, bar.took.Round(time.Millisecond), bar.limit)
		}
	}
	if peak > memoryLimit {
		return fmt.Errorf("memory of all processes: %d MiB at its peak, limit %d MiB", peak>>20, memoryLimit>>20)
	}
	return nil
}
