package addoninstallation

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/backoff"
	"github.com/trellis-addons/trellis/pkg/base/conditions"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/installer"
)

// Limits of lists in the status.
const (
	maxUnhealthy = 20
	maxInventory = 50
)

// project writes the whole status from facts and outcome; steps only find facts. After it, only hideValues changes the
// status: it removes values of the platform from messages.
func project(f *facts, outcome *loop.Outcome, now time.Time) {
	if outcome.Is(loop.NotMine) {
		return
	}
	state := &f.installation.Status
	defer withoutInventoryAlone(state)()
	defer conditions.Date(&state.Conditions, slices.Clone(state.Conditions), now)
	state.ObservedGeneration, state.Cause = f.installation.Generation, outcome.Cause
	projectRetries(state, f.retries)
	if isRemoved(f.installation) || f.deletion == deletionRemoving {
		projectRemoval(f, outcome)
		return
	}
	if isBeginning(f, outcome) {
		setDrifted(f)
		return
	}
	projectSelected(f)
	setCompatible(f, outcome)
	setValuesResolved(f, outcome)
	projectConfigs(f, outcome)
	setFetched(f, outcome)
	setRendered(f, outcome)
	projectAccess(f, outcome)
	setAccessReady(f, outcome)
	setApplied(f, outcome)
	projectInstalled(f)
	setHealthy(f, outcome)
	projectObjects(f)
	setDrifted(f)
	setDeletionBlocked(f)
	setReady(f, outcome)
	f.projectDeletion()
	inOrder(state.Conditions)
}

// isBeginning says that a reconciliation of a healthy installation lacks only data that a new process does not have
// yet: content in an empty store, or the first connection to its cluster. The status then stays until both are
// available, or known to be unavailable, except for drift that this reconciliation found. A change of Ready and back
// would be new evidence to a roll-out.
func isBeginning(f *facts, outcome *loop.Outcome) bool {
	isMissing := outcome.Reason == kubermaticv1.ReasonFetching || f.connecting && outcome.Reason == kubermaticv1.ReasonClusterNotReady
	isWell := f.run.IsHealthy() || f.run.Health == nil && f.connecting
	ready := meta.FindStatusCondition(f.installation.Status.Conditions, kubermaticv1.ConditionReady)
	return isMissing && isWell && !f.run.IsAskedFor() &&
		ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == f.installation.Generation &&
		f.run.Record().IsComplete() && f.isOnRecord()
}

// isOnRecord says whether the record was made from the requested version. For content that only the record has
// (pinFacts), there is no choice to compare it with.
func (f *facts) isOnRecord() bool {
	record := f.run.Record()
	return f.pinned != "" || record.Version == f.choice.Version.Version && record.EntryDigest == f.choice.Origin.Digest
}

// hasNothing says that the installed add-on has no objects for its cluster.
func hasNothing(run *installer.Run) bool {
	return run.Record().IsComplete() && run.Record().IsEmpty() && len(run.Record().Hooks) == 0
}

// projectRetries shows how often an attempt failed, and when the next one begins.
func projectRetries(state *kubermaticv1.AddonInstallationStatus, tried retries) {
	state.Failures, state.NextAttempt = tried.count, nil
	if tried.count > 0 {
		next := metav1.NewTime(tried.next)
		state.NextAttempt = &next
	}
}

// projectSelected shows the Cluster, version and Helm release, as far as they are known.
func projectSelected(f *facts) {
	state := &f.installation.Status
	if f.identity != nil {
		state.Cluster = f.identity
	}
	if f.selected != nil {
		if f.selected.availableUpdate != state.AvailableUpdate {
			f.update = f.selected.availableUpdate
		}
		state.Target, state.AvailableUpdate = f.selected.target, f.selected.availableUpdate
	}
	release := f.run.Release
	if release == nil {
		return
	}
	state.Release = nil
	if release.Name != "" {
		state.Release = &kubermaticv1.HelmReleaseState{Name: release.Name, Revision: int32(release.Revision), Status: release.Status}
	}
}

// projectAccess lists the credentials that the reconciliation maintained. If it ended before, the previous list stays.
func projectAccess(f *facts, outcome *loop.Outcome) {
	state := &f.installation.Status
	if len(f.statuses) > 0 || f.hasNoAccess() && outcome.Condition != kubermaticv1.ConditionAccessReady {
		state.Access = nil
	}
	for _, one := range f.statuses {
		shown := kubermaticv1.AccessState{
			Name: one.Name, Secret: one.Secret, Subject: one.Subject, Groups: one.Groups, SignerName: one.Signer, Request: one.Request,
		}
		if !one.Expires.IsZero() {
			expires := metav1.NewTime(one.Expires).Rfc3339Copy()
			shown.Expires = &expires
		}
		state.Access = append(state.Access, shown)
	}
}

// hasNoAccess says that the record has no credentials, and the reconciliation maintained none.
func (f *facts) hasNoAccess() bool {
	record := f.run.Record()
	return len(f.statuses) == 0 && f.run.State.Loaded && (record == nil || len(record.Access) == 0)
}

// deprecation is the catalogue's message about a deprecated version, and the version to use instead.
func deprecation(version *kubermaticv1.AddonVersion, update string) string {
	text := fmt.Sprintf("version %q is deprecated: %s", version.Version, version.Deprecated)
	if update != "" {
		text += fmt.Sprintf("; version %q would fit", update)
	}
	return text
}

// projectInstalled shows the user cluster's state, which may differ from the wanted one.
func projectInstalled(f *facts) {
	state, record := &f.installation.Status, f.run.Record()
	if !f.run.State.Loaded {
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
	state, run := &f.installation.Status, &f.run
	if record := run.Record(); record.IsComplete() {
		applied := record.Time.Rfc3339Copy() // at the API server's precision: a finer time would differ in every reconciliation
		state.LastApplied = &kubermaticv1.AppliedState{
			Addon: record.Addon, Version: record.Version, EntryDigest: record.Content, ArtifactDigest: record.Artifact.Digest,
			Inputs: record.Inputs, K8sVersion: madeFor(f, state.LastApplied, &applied),
			Objects: record.ObjectsDigest, Time: &applied, PlatformValues: record.PlatformValues, Images: record.Images,
		}
	}
	if state.LastApplied != nil && run.Record().IsComplete() {
		state.LastApplied.VolumeClaims = volumeClaims(run.Record().InCluster())
		state.Inventory = inventoryOf(run.Record().InCluster())
	}
	if run.Health == nil {
		return
	}
	state.Objects = &kubermaticv1.ObjectCounts{
		Total: int32(run.Health.Total), Healthy: int32(run.Health.Healthy), Failing: int32(run.Failing()),
		Summary: fmt.Sprintf("%d/%d", run.Health.Healthy, run.Health.Total),
	}
	state.Unhealthy = nil
	for _, note := range run.Health.Unhealthy[:min(len(run.Health.Unhealthy), maxUnhealthy)] {
		state.Unhealthy = append(state.Unhealthy, kubermaticv1.UnhealthyObject{
			Ref: note.Key.String(), Reason: note.Reason, Message: text.Message(note.Message), Cause: note.Cause,
		})
	}
}

// withoutInventoryAlone returns a function that removes the inventory if it is the only change of the status. The status of an earlier
// release has no inventory, and an upgrade of the manager must not write the status of every installation.
func withoutInventoryAlone(state *kubermaticv1.AddonInstallationStatus) func() {
	if state.Inventory != nil {
		return func() {}
	}
	before := state.DeepCopy()
	return func() {
		inventory := state.Inventory
		state.Inventory = nil
		if !equality.Semantic.DeepEqual(before, state) {
			state.Inventory = inventory
		}
	}
}

// inventoryOf counts the objects of an inventory by kind, the most frequent kinds first.
func inventoryOf(inventory ownership.Inventory) []kubermaticv1.KindCount {
	numbers := map[schema.GroupKind]int32{}
	for _, entry := range inventory {
		numbers[entry.GroupKind()]++
	}
	var counted []kubermaticv1.KindCount
	for kind, number := range numbers {
		counted = append(counted, kubermaticv1.KindCount{Group: kind.Group, Kind: kind.Kind, Count: number})
	}
	slices.SortFunc(counted, func(a, b kubermaticv1.KindCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Group, b.Group))
	})
	return counted[:min(len(counted), maxInventory)]
}

// volumeClaims is the number of claims in an inventory that are removed with it.
func volumeClaims(inventory ownership.Inventory) int32 {
	count := int32(0)
	for _, entry := range inventory {
		if entry.GroupKind() == calls.ClaimGK && !entry.Orphan {
			count++
		}
	}
	return count
}

func repairedText(repaired []ownership.Key) string {
	return andMore(fmt.Sprintf("%s was repaired", repaired[0]), ", and %d more", len(repaired)-1)
}

// andMore is the first of several messages, and the number of the others.
func andMore(first, format string, more int) string {
	if more == 0 {
		return first
	}
	return first + fmt.Sprintf(format, more)
}

// projectRemoval shows the progress of a removal.
func projectRemoval(f *facts, outcome *loop.Outcome) {
	if f.identity != nil {
		f.installation.Status.Cluster = f.identity
	}
	f.projectDeletion()
	if isRemoved(f.installation) {
		setDeletionBlocked(f)
	}
	ready := *outcome
	if notConnectedReasons[outcome.Reason] && f.deletion == deletionNone {
		ready.Message += "; the removal waits until this is solved; to delete the installation at once and leave its objects in the cluster, " +
			"set deletionPolicy to Orphan"
	}
	setReady(f, &ready)
	if len(f.statuses) > 0 {
		projectAccess(f, outcome)
		setAccessReady(f, outcome)
	}
}

// notConnectedReasons are the reasons for which a user cluster can't be written to.
var notConnectedReasons = map[string]bool{
	kubermaticv1.ReasonClusterNotReady: true, kubermaticv1.ReasonClusterUnreachable: true, kubermaticv1.ReasonClusterMisbehaves: true,
	kubermaticv1.ReasonKubeconfigInvalid: true, kubermaticv1.ReasonClusterSwapped: true, kubermaticv1.ReasonClusterShared: true,
}

// retries are the consecutive failed attempts, and when the next one begins; zero if none failed.
type retries struct {
	count int32
	next  time.Time
}

// backOff sets the wait of a failure that has none, by the number of consecutive failures. A wait for a condition is no
// failure.
func (f *facts) backOff(outcome *loop.Outcome, now time.Time) *loop.Outcome {
	if !outcome.Is(loop.RetryAt) || outcome.Recheck > 0 {
		f.memory.failures, f.retries = 0, retries{f.run.HookAttempts, f.run.HookRetry}
		if f.retries.count == 0 {
			f.refused(outcome, now)
		}
		return outcome
	}
	f.memory.failures++
	wait := backoff.After(f.memory.failures, time.Second, installer.SlowestRetry)
	f.retries = retries{f.memory.failures, now.Add(wait)}
	return outcome.Within(wait, loop.RetryAt)
}

// refused counts consecutive findings of a problem that has to be solved first, and shows when everything is tried
// again at the latest. Each attempt writes the status once, and attempts are minutes apart.
func (f *facts) refused(outcome *loop.Outcome, now time.Time) {
	wait := loop.RequeueAfter(outcome)
	if !triedAgain[outcome.Reason] || wait < installer.RefusedRecheck {
		f.memory.refusals = 0
		return
	}
	f.memory.refusals++
	f.retries = retries{f.memory.refusals, now.Add(wait)}
}

// triedAgain are the reasons that are retried without a known change.
var triedAgain = map[string]bool{
	kubermaticv1.ReasonFetchFailed: true, kubermaticv1.ReasonArtifactNotFound: true, kubermaticv1.ReasonArtifactRefused: true,
	kubermaticv1.ReasonLimitExceeded: true, kubermaticv1.ReasonNamespaceMissing: true, kubermaticv1.ReasonKindNotServed: true,
	kubermaticv1.ReasonObjectExists: true, kubermaticv1.ReasonConflict: true, kubermaticv1.ReasonImmutableField: true,
	kubermaticv1.ReasonObjectInvalid: true, kubermaticv1.ReasonReleaseNameTaken: true,
}
