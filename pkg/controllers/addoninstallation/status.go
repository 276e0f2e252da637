package addoninstallation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/backoff"
	"github.com/trellis-addons/trellis/pkg/calls"
	"github.com/trellis-addons/trellis/pkg/conditions"
	"github.com/trellis-addons/trellis/pkg/installer"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/ownership"
	"github.com/trellis-addons/trellis/pkg/text"
)

// pipeline is the order of the conditions that a pass earns, each with its word for success.
var pipeline = []struct{ condition, reason string }{
	{kubermaticv1.ConditionCompatible, kubermaticv1.ReasonCompatible},
	{kubermaticv1.ConditionValuesResolved, kubermaticv1.ReasonValuesResolved},
	{kubermaticv1.ConditionFetched, kubermaticv1.ReasonFetched},
	{kubermaticv1.ConditionRendered, kubermaticv1.ReasonRendered},
	{kubermaticv1.ConditionAccessReady, kubermaticv1.ReasonAccessGranted},
	{kubermaticv1.ConditionApplied, kubermaticv1.ReasonApplied},
	{kubermaticv1.ConditionHealthy, kubermaticv1.ReasonHealthy},
}

const maxUnhealthy = 20

// inOrder puts conditions in the same order whatever came first, the verdict before its parts.
func inOrder(conditions []metav1.Condition) {
	rank := func(condition metav1.Condition) int {
		if condition.Type == kubermaticv1.ConditionReady {
			return -1
		}
		for place, step := range pipeline {
			if step.condition == condition.Type {
				return place
			}
		}
		return len(pipeline)
	}
	slices.SortFunc(conditions, func(a, b metav1.Condition) int {
		return cmp.Or(rank(a)-rank(b), strings.Compare(a.Type, b.Type))
	})
}

// verdict is an outcome in the words of conditions.
type verdict struct {
	condition, reason, message, cause string
	state                             metav1.ConditionStatus
	done                              bool
}

// as is the verdict as a condition of that type, for a generation.
func (v verdict) as(kind string, generation int64) metav1.Condition {
	return metav1.Condition{Type: kind, Status: v.state, Reason: v.reason, Message: v.message, ObservedGeneration: generation}
}

func verdictOf(outcome loop.Outcome) verdict {
	switch o := outcome.(type) {
	case loop.RetryAt:
		state := metav1.ConditionFalse
		if o.Unknown {
			state = metav1.ConditionUnknown
		}
		return verdict{condition: o.Condition, reason: o.Reason, message: o.Message, cause: o.Cause, state: state}
	case loop.Waiting:
		return verdict{condition: o.Condition, reason: o.Reason, message: o.Message, cause: o.Cause, state: metav1.ConditionFalse}
	case loop.Stalled:
		return verdict{condition: o.Condition, reason: o.Reason, message: o.Message, cause: o.Cause, state: metav1.ConditionFalse}
	case loop.Checkpoint:
		return verdict{condition: o.Condition, reason: o.Reason, message: o.Message, state: metav1.ConditionFalse}
	}
	return verdict{done: true}
}

// project writes the status, whole, from facts and outcome; steps find facts. After it, only hideValues changes the status: it takes
// values of the platform out of messages.
func project(f *facts, outcome loop.Outcome, now time.Time) {
	if outcome == (loop.NotMine{}) {
		return
	}
	result, state := verdictOf(outcome), &f.installation.Status
	defer conditions.Date(&state.Conditions, slices.Clone(state.Conditions), now)
	state.ObservedGeneration, state.Cause = f.installation.Generation, result.cause
	projectRetries(state, f.retries)
	if isRemoved(f.installation) || f.parting == partingRemoving {
		projectRemoval(f, result)
		return
	}
	if isBeginning(f, result) {
		projectDrift(f.installation, &f.pass)
		return
	}
	projectSelected(f)
	projectPipeline(f, result)
	projectAccess(f, result)
	projectFinished(f)
	projectInstalled(f)
	projectHealth(f.installation, &f.pass, result)
	projectObjects(f)
	projectDrift(f.installation, &f.pass)
	projectProtection(f.installation)
	projectReady(f.installation, &f.pass, result)
	f.projectParting()
	inOrder(state.Conditions)
}

// isBeginning says that a pass misses nothing but what a process that starts does not have yet, of
// what is installed and was found to work: its content, in an empty store, and the first connection
// to its cluster. The status stays as it is until both are here, or can't be had, but for drift, which
// this pass may have found. A Ready that came and went would be new evidence to a roll-out.
func isBeginning(f *facts, result verdict) bool {
	isMissing := result.reason == kubermaticv1.ReasonFetching || f.connecting && result.reason == kubermaticv1.ReasonClusterNotReady
	isWell := f.pass.IsHealthy() || f.pass.Health == nil && f.connecting
	ready := meta.FindStatusCondition(f.installation.Status.Conditions, kubermaticv1.ConditionReady)
	return isMissing && isWell && !f.pass.IsAskedFor() &&
		ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == f.installation.Generation &&
		f.pass.Record().IsComplete() && f.isOnRecord()
}

// isOnRecord says whether the record was made from what the installation asks for. Of content that only the record has
// (pinFacts), there is no choice to compare it with.
func (f *facts) isOnRecord() bool {
	record := f.pass.Record()
	return f.pinned != "" || record.Version == f.choice.Version.Version && record.EntryDigest == f.choice.Origin.Digest
}

// hasNothing says that an add-on is installed that has nothing for its cluster.
func hasNothing(pass *installer.Pass) bool {
	return pass.Record().IsComplete() && pass.Record().IsEmpty() && len(pass.Record().Hooks) == 0
}

func projectReady(installation *kubermaticv1.AddonInstallation, pass *installer.Pass, result verdict) {
	state, generation := &installation.Status, installation.Generation
	if result.done {
		stands := "is installed and healthy"
		switch {
		case hasNothing(pass):
			stands = "has nothing to apply for this cluster"
		case isUnwatched(pass):
			stands = "is installed; nobody judges its health"
		}
		stands += waitingChange(state.Conditions)
		conditions.True(&state.Conditions, generation, kubermaticv1.ConditionReady, kubermaticv1.ReasonReady,
			fmt.Sprintf("%s %s %s", installation.Spec.AddonRef.Name, state.Version, stands))
		return
	}
	conditions.Set(&state.Conditions, result.as(kubermaticv1.ConditionReady, generation))
}

// projectRetries says what failed how often, and when it is tried again.
func projectRetries(state *kubermaticv1.AddonInstallationStatus, tried retries) {
	state.Failures, state.NextAttempt = tried.count, nil
	if tried.count > 0 {
		next := metav1.NewTime(tried.next)
		state.NextAttempt = &next
	}
}

// projectSelected says which Cluster, version and Helm release these are, as far as the pass came.
func projectSelected(f *facts) {
	state := &f.installation.Status
	if f.identity != nil {
		state.Cluster = f.identity
	}
	if f.selected != nil {
		state.Target, state.AvailableUpdate = f.selected.target, f.selected.availableUpdate
	}
	release := f.pass.Release
	if release == nil {
		return
	}
	state.Release = nil
	if release.Name != "" {
		state.Release = &kubermaticv1.HelmReleaseState{Name: release.Name, Revision: int32(release.Revision), Status: release.Status}
	}
}

// deprecation is what the catalogue says of a deprecated version, and what to choose instead.
func deprecation(version *kubermaticv1.AddonVersion, update string) string {
	text := fmt.Sprintf("version %q is deprecated: %s", version.Version, version.Deprecated)
	if update != "" {
		text += fmt.Sprintf("; version %q would fit", update)
	}
	return text
}

// projectInstalled says what the user cluster has, which may be something else than is wanted.
func projectInstalled(f *facts) {
	state, record := &f.installation.Status, f.pass.Record()
	if !f.pass.State.Loaded {
		return
	}
	state.Version, state.OnClusterDeletion = installedVersion(f), ""
	if record != nil {
		state.OnClusterDeletion = record.OnClusterDeletion
	}
	fetched := &kubermaticv1.Artifact{Revision: f.snapshot.Revision, Digest: f.snapshot.Digest}
	switch {
	case record == nil || !record.IsApplied() && record.From == "":
		if fetched.Digest != "" {
			state.Artifact = fetched
		}
	case record.IsComplete() && record.Artifact.Digest == fetched.Digest: // another commit may have the same content
		state.Artifact = fetched
	case record.IsComplete():
		state.Artifact = record.Artifact.DeepCopy()
	}
}

func projectObjects(f *facts) {
	state, pass := &f.installation.Status, &f.pass
	if record := pass.Record(); record.IsComplete() {
		applied := record.Time.Rfc3339Copy() // as the API server keeps it: finer, it would differ in every pass
		state.LastApplied = &kubermaticv1.AppliedState{
			Addon: record.Addon, Version: record.Version, EntryDigest: record.Content, ArtifactDigest: record.Artifact.Digest,
			Inputs: record.Inputs, K8sVersion: madeFor(f, state.LastApplied, &applied),
			Objects: record.ObjectsDigest, Time: &applied, PlatformValues: record.PlatformValues,
		}
	}
	if state.LastApplied != nil && pass.Record().IsComplete() {
		state.LastApplied.VolumeClaims = volumeClaims(pass.Record().InCluster())
	}
	if pass.Health == nil {
		return
	}
	state.Objects = &kubermaticv1.ObjectCounts{
		Total: int32(pass.Health.Total), Healthy: int32(pass.Health.Healthy), Failing: int32(pass.Failing()),
		Summary: fmt.Sprintf("%d/%d", pass.Health.Healthy, pass.Health.Total),
	}
	state.Unhealthy = nil
	for _, note := range pass.Health.Unhealthy[:min(len(pass.Health.Unhealthy), maxUnhealthy)] {
		state.Unhealthy = append(state.Unhealthy, kubermaticv1.UnhealthyObject{
			Ref: note.Key.String(), Reason: note.Reason, Message: text.Message(note.Message), Cause: note.Cause,
		})
	}
}

// volumeClaims are those of an inventory that are removed with it.
func volumeClaims(inventory ownership.Inventory) int32 {
	count := int32(0)
	for _, entry := range inventory {
		if entry.GroupKind() == calls.ClaimGK && !entry.Orphan {
			count++
		}
	}
	return count
}

func projectDrift(installation *kubermaticv1.AddonInstallation, pass *installer.Pass) {
	list, generation := &installation.Status.Conditions, installation.Generation
	if pass.Applied != nil && meta.FindStatusCondition(*list, kubermaticv1.ConditionDrifted) == nil {
		conditions.False(list, generation, kubermaticv1.ConditionDrifted, kubermaticv1.ReasonNoDrift, "") // it was just written
	}
	if pass.Compared == nil {
		return
	}
	fights, drifted, newer := pass.Compared.Fights, pass.Compared.Drifted, pass.Compared.Newer
	switch {
	case len(fights) > 0:
		conditions.True(list, generation, kubermaticv1.ConditionDrifted, kubermaticv1.ReasonFight, fmt.Sprintf(
			"%s is changed back after each repair and is left alone: stop what changes it, then set annotation %s",
			fights[0], kubermaticv1.AnnotationReconcileAt))
	case len(newer) > 0:
		conditions.True(list, generation, kubermaticv1.ConditionDrifted, kubermaticv1.ReasonNewerContent, fmt.Sprintf(
			"%s was written by Trellis after what is on record (%s in all), as where the seed was restored, and stays so until it is "+
				"applied anew: to have what is on record, set annotation %s",
			newer[0], text.Count(len(newer), "object"), kubermaticv1.AnnotationReconcileAt))
	case len(drifted) > 0:
		conditions.True(list, generation, kubermaticv1.ConditionDrifted, kubermaticv1.ReasonDriftShown, fmt.Sprintf(
			"%s differs from what was applied (%s in all) and stays so: the strategy is Once",
			drifted[0], text.Count(len(drifted), "object")))
	case len(pass.Repaired) > 0:
		conditions.False(list, generation, kubermaticv1.ConditionDrifted, kubermaticv1.ReasonRepaired, repairedText(pass.Repaired))
	default:
		conditions.False(list, generation, kubermaticv1.ConditionDrifted, kubermaticv1.ReasonNoDrift, "")
	}
}

func repairedText(repaired []ownership.Key) string {
	return andMore(fmt.Sprintf("%s was put back", repaired[0]), ", and %d more", len(repaired)-1)
}

// andMore is the first of some sentences, and how many more there are.
func andMore(first, format string, more int) string {
	if more == 0 {
		return first
	}
	return first + fmt.Sprintf(format, more)
}

// projectProtection says why a core add-on that is being deleted stays.
func projectProtection(installation *kubermaticv1.AddonInstallation) {
	if !installation.DeletionTimestamp.IsZero() {
		conditions.True(&installation.Status.Conditions, installation.Generation, kubermaticv1.ConditionDeletionBlocked,
			kubermaticv1.ReasonInCoreSet, kubermaticv1.DeletionBlockedMessage)
	}
}

// projectRemoval says how a removal stands.
func projectRemoval(f *facts, result verdict) {
	list, generation := &f.installation.Status.Conditions, f.installation.Generation
	if f.identity != nil {
		f.installation.Status.Cluster = f.identity
	}
	f.projectParting()
	if isRemoved(f.installation) && meta.IsStatusConditionTrue(*list, kubermaticv1.ConditionDeletionBlocked) {
		conditions.False(list, generation, kubermaticv1.ConditionDeletionBlocked, kubermaticv1.ReasonRemoving, "")
	}
	if notConnectedReasons[result.reason] && f.parting == partingNone {
		result.message += "; the removal waits for it: deletionPolicy Orphan would let the installation go at once, and leave everything there"
	}
	conditions.Set(list, result.as(kubermaticv1.ConditionReady, generation))
	if len(f.standings) > 0 {
		projectAccess(f, result)
	}
}

// notConnectedReasons are those of a user cluster that can't be written to.
var notConnectedReasons = map[string]bool{
	kubermaticv1.ReasonClusterNotReady: true, kubermaticv1.ReasonClusterUnreachable: true, kubermaticv1.ReasonClusterMisbehaves: true,
	kubermaticv1.ReasonKubeconfigInvalid: true, kubermaticv1.ReasonClusterSwapped: true, kubermaticv1.ReasonClusterShared: true,
}

// retries are attempts in a row that failed, and when the next one begins; zero where none did.
type retries struct {
	count int32
	next  time.Time
}

// backOff gives a failure without a wait of its own the wait of its number in a row.
// Waiting for something is no failure.
func (f *facts) backOff(outcome loop.Outcome, now time.Time) loop.Outcome {
	retry, failed := outcome.(loop.RetryAt)
	if !failed || retry.After > 0 {
		f.memory.failures, f.retries = 0, retries{f.pass.HookAttempts, f.pass.HookRetry}
		if f.retries.count == 0 {
			f.refused(outcome, now)
		}
		return outcome
	}
	f.memory.failures++
	retry.After = backoff.After(f.memory.failures, time.Second, installer.SlowestRetry)
	f.retries = retries{f.memory.failures, now.Add(retry.After)}
	return retry
}

// refused counts how often it was found that somebody has to do something first, and says when all
// of it is tried again at the latest. Each is in the status once an attempt, and attempts are
// minutes apart.
func (f *facts) refused(outcome loop.Outcome, now time.Time) {
	said, wait := verdictOf(outcome), loop.RequeueAfter(outcome)
	if !triedAgain[said.reason] || wait < installer.RefusedRecheck {
		f.memory.refusals = 0
		return
	}
	f.memory.refusals++
	f.retries = retries{f.memory.refusals, now.Add(wait)}
}

// triedAgain are reasons of what is tried again although nothing is known to have changed.
var triedAgain = map[string]bool{
	kubermaticv1.ReasonFetchFailed: true, kubermaticv1.ReasonArtifactNotFound: true, kubermaticv1.ReasonArtifactRefused: true,
	kubermaticv1.ReasonLimitExceeded: true, kubermaticv1.ReasonNamespaceMissing: true, kubermaticv1.ReasonKindNotServed: true,
	kubermaticv1.ReasonObjectExists: true, kubermaticv1.ReasonConflict: true, kubermaticv1.ReasonImmutableField: true,
	kubermaticv1.ReasonObjectInvalid: true, kubermaticv1.ReasonReleaseNameTaken: true,
}
