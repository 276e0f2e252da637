package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/sandbox"
)

// page is the add-on of the set, the set, and its item.
const page = "page"

// The clusters by what becomes of them: the first gets changes first, the last has an installation that somebody made by hand.
var canary, followers, byHand = sandbox.UserClusters()[0], sandbox.UserClusters()[1:3], sandbox.UserClusters()[3]

// setPreview shows what a set would do before it does.
func (s *story) setPreview(ctx context.Context) error {
	if err := s.noteBefore(ctx, append([]sandbox.UserCluster{canary}, followers...)...); err != nil {
		return err
	}
	if err := s.publishPages(ctx, "1.0.0"); err != nil {
		return err
	}
	if err := s.installByHand(ctx); err != nil {
		return err
	}
	if err := s.box.Client(sandbox.Master).Create(ctx, pageSet()); err != nil {
		return fmt.Errorf("creating the set: %w", err)
	}
	set, err := s.awaitSet(ctx, func(set *kubermaticv1.AddonSet) error {
		installs, blocked := pending(set, kubermaticv1.ChangeInstall), pending(set, kubermaticv1.ChangeBlocked)
		if installs != 3 || blocked != 1 {
			return fmt.Errorf("%d clusters would get it, and it is blocked in %d; want 3 and 1", installs, blocked)
		}
		return expect.Condition(set, kubermaticv1.ConditionReady, "False", kubermaticv1.ReasonPaused)
	})
	if err != nil {
		return err
	}
	for _, change := range set.Status.Pending {
		what := strings.TrimSpace(strings.ToLower(string(change.Change)) + " " + change.Item + " " + change.To)
		s.progress.Printf("  would be: %s in %d, such as %s", what, change.Clusters, change.Example)
	}
	return s.expectVersions(ctx, "", canary, followers[0], followers[1])
}

// pageSet is a set that is paused: it waits to be looked at.
func pageSet() *kubermaticv1.AddonSet {
	everything := intstr.FromString("100%")
	return &kubermaticv1.AddonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: sandbox.Namespace, Name: page},
		Spec: kubermaticv1.AddonSetSpec{
			Paused: true,
			ClusterSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
				Key: sandbox.LabelRing, Operator: metav1.LabelSelectorOpExists,
			}}},
			Addons: []kubermaticv1.AddonSetItem{{
				Name: page, AddonRef: kubermaticv1.AddonReference{Name: page, Version: "1.x"}, TargetNamespace: "default",
			}},
			Rollout: &kubermaticv1.Rollout{
				Pace: kubermaticv1.Pace{
					MaxConcurrency: &everything, Soak: &metav1.Duration{Duration: time.Second},
					ProgressDeadline: &metav1.Duration{Duration: time.Minute},
				},
				Groups: []kubermaticv1.RolloutGroup{{
					Name: "canary", ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{sandbox.LabelRing: canary.Ring}},
				}},
			},
		},
	}
}

// installByHand makes what the set must leave alone: an installation of the item's name.
func (s *story) installByHand(ctx context.Context) error {
	made := &kubermaticv1.AddonInstallation{
		ObjectMeta: metav1.ObjectMeta{Namespace: byHand.Namespace(), Name: page},
		Spec: kubermaticv1.AddonInstallationSpec{
			AddonRef: kubermaticv1.AddonReference{Name: page, Version: "1.0.0"}, TargetNamespace: "mine", CreateNamespace: true,
		},
	}
	return s.box.Client(byHand.Seed).Create(ctx, made)
}

// setInstalled lets the set go: the canary gets the add-on before all others.
func (s *story) setInstalled(ctx context.Context) error {
	if err := s.editSet(ctx, `{"spec":{"paused":false}}`); err != nil {
		return err
	}
	return s.rolls(ctx, "1.0.0")
}

// setUpgraded publishes a version in range: nothing else is needed for it to roll.
func (s *story) setUpgraded(ctx context.Context) error {
	if err := s.publishPages(ctx, "1.0.0", "1.1.0"); err != nil {
		return err
	}
	return s.rolls(ctx, "1.1.0")
}

// setHalted publishes a version that never gets healthy: it comes as far as the canary, where it is rolled back.
func (s *story) setHalted(ctx context.Context) error {
	if err := s.publishPages(ctx, "1.0.0", "1.1.0", brokenPage); err != nil {
		return err
	}
	set, err := s.awaitSet(ctx, func(set *kubermaticv1.AddonSet) error {
		return expect.Condition(set, kubermaticv1.ConditionReady, "False", kubermaticv1.ReasonHalted)
	})
	if err != nil {
		return err
	}
	for _, one := range set.Status.Clusters {
		if one.State == kubermaticv1.ClusterFailed {
			s.progress.Printf("  halted: %s on %s: %s", one.Name, one.Seed, one.Reason)
		}
	}
	if written, _ := s.followersLack(ctx, brokenPage); written != "" {
		return fmt.Errorf("%s was written to have the broken version", written)
	}
	return s.expectVersions(ctx, "1.1.0", followers...)
}

// setFixed publishes the mended version. The set tells that all of it is done, which it does every two seconds at most.
func (s *story) setFixed(ctx context.Context) error {
	if err := s.publishPages(ctx, "1.0.0", "1.1.0", "1.2.1"); err != nil {
		return err
	}
	if err := s.rolls(ctx, "1.2.1"); err != nil {
		return err
	}
	_, err := s.awaitSet(ctx, func(set *kubermaticv1.AddonSet) error {
		return expect.Condition(set, kubermaticv1.ConditionReady, "True", kubermaticv1.ReasonComplete)
	})
	return err
}

// setUnselected takes the label off one cluster.
func (s *story) setUnselected(ctx context.Context) error {
	leaves := followers[0]
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"`+sandbox.LabelRing+`":null}}}`))
	cluster := &kkpv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: leaves.Name}}
	if err := s.box.Client(leaves.Seed).Patch(ctx, cluster, patch); err != nil {
		return fmt.Errorf("taking the label off %s: %w", leaves.Name, err)
	}
	if err := s.awaitGone(ctx, leaves.Seed, installationOf(leaves)); err != nil {
		return err
	}
	if err := s.awaitAsBefore(ctx, leaves); err != nil {
		return err
	}
	s.progress.Printf("  %s is not selected any more, and is as before", leaves.Name)
	return s.expectVersions(ctx, "1.2.1", canary, followers[1])
}

// setDeleted deletes the set; what was made by hand stays, whole.
func (s *story) setDeleted(ctx context.Context) error {
	if err := s.expectVersions(ctx, "1.0.0", byHand); err != nil {
		return err
	}
	if err := s.noteBefore(ctx, byHand); err != nil {
		return err
	}
	set := &kubermaticv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: sandbox.Namespace, Name: page}}
	err := s.box.Client(sandbox.Master).Delete(ctx, set)
	if !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
		return fmt.Errorf("deleting the set without a confirmation: %w, want a refusal", err)
	}
	s.progress.Printf("  it is not deleted without a confirmation")
	if err := s.editSet(ctx, `{"metadata":{"annotations":{"`+kubermaticv1.AnnotationConfirmDeletion+`":"`+page+`"}}}`); err != nil {
		return err
	}
	if err := s.box.Client(sandbox.Master).Delete(ctx, set); err != nil {
		return fmt.Errorf("deleting the set: %w", err)
	}
	if err := s.awaitGone(ctx, sandbox.Master, set); err != nil {
		return err
	}
	if err := s.expectVersions(ctx, "1.0.0", byHand); err != nil {
		return err
	}
	if err := each(ctx, sandbox.UserClusters(), s.awaitAsBefore); err != nil {
		return err
	}
	s.progress.Printf("  the set is gone, and user clusters are as before; %s has what was made by hand", byHand.Name)
	return nil
}

// rolls waits until a version is everywhere. That a follower was written before the canary was done is an error, once and for all.
func (s *story) rolls(ctx context.Context, version string) error {
	begin := time.Now()
	var canaryAfter time.Duration
	var early error
	_, err := s.awaitSet(ctx, func(*kubermaticv1.AddonSet) error {
		written, missing := s.followersLack(ctx, version)
		first := s.hasVersion(ctx, canary, version) // read last: where it is missing, it was missing when the others were read
		if first != nil && written != "" && early == nil {
			early = fmt.Errorf("%s was written to have %s %s before the canary was done: %w", written, page, version, first)
		}
		if first == nil && canaryAfter == 0 {
			canaryAfter = time.Since(begin)
		}
		return errors.Join(missing, first)
	})
	if err = errors.Join(early, err); err != nil {
		return err
	}
	s.progress.Printf("  %s has %s %s after %.1f s, all have it after %.1f s",
		canary.Name, page, version, canaryAfter.Seconds(), time.Since(begin).Seconds())
	return nil
}

// followersLack names a follower that was written to have the version, and tells what is missing at any.
func (s *story) followersLack(ctx context.Context, version string) (written string, missing error) {
	for _, cluster := range followers {
		missing = errors.Join(missing, s.hasVersion(ctx, cluster, version))
		found := installationOf(cluster)
		err := s.box.Client(cluster.Seed).Get(ctx, client.ObjectKeyFromObject(found), found)
		if err == nil && found.Spec.AddonRef.Version == version {
			written = cluster.Name
		}
		missing = errors.Join(missing, client.IgnoreNotFound(err))
	}
	return written, missing
}
