package v1

// ConditionReady sums up, on both kinds. True: everything asked for at the current generation is there and healthy.
// False: with the reason of the first condition that fails in pipeline order. Unknown: the cluster can't be reached.
const ConditionReady = "Ready"

// Reasons of Ready that no other condition has.
const (
	// ReasonReady: everything is there and healthy.
	ReasonReady = "Ready"
	// ReasonPaused: spec.paused is set, or the Cluster is paused; nothing is done.
	ReasonPaused = "Paused"
	// ReasonProgressing: work is under way and needs nobody.
	ReasonProgressing = "Progressing"
	// ReasonClusterUnknown: no Cluster, or more than one, has this namespace, or the name that spec.clusterName gives; the message names
	// those that there are.
	ReasonClusterUnknown = "ClusterUnknown"
	// ReasonNamespaceUnset: neither spec.targetNamespace nor the catalogue says into which namespace the add-on goes.
	ReasonNamespaceUnset = "NamespaceUnset"
	// ReasonClusterNotReady: the Cluster has no version or no API server yet.
	ReasonClusterNotReady = "ClusterNotReady"
	// ReasonClusterUnreachable: the user cluster's API server does not answer.
	ReasonClusterUnreachable = "ClusterUnreachable"
	// ReasonClusterMisbehaves: the user cluster's API server sends invalid or unbounded answers, which are not used.
	ReasonClusterMisbehaves = "ClusterMisbehaves"
	// ReasonKubeconfigInvalid: the user cluster's kubeconfig is missing, or uses what is not allowed.
	ReasonKubeconfigInvalid = "KubeconfigInvalid"
	// ReasonClusterSwapped: the kubeconfig leads to another user cluster than before; nothing is written there, and nothing let go.
	ReasonClusterSwapped = "ClusterSwapped"
	// ReasonClusterShared: the kubeconfig leads to the user cluster of another Cluster, which had it first.
	ReasonClusterShared = "ClusterShared"
	// ReasonRemoving: the installation is being removed from the user cluster.
	ReasonRemoving = "Removing"
	// ReasonRemovalBlocked: an object in the user cluster does not go; the message names it.
	ReasonRemovalBlocked = "RemovalBlocked"
	// ReasonRecordFromNewerRelease: the release record was written by a newer Trellis; nothing is changed.
	ReasonRecordFromNewerRelease = "RecordFromNewerRelease"
	// ReasonKKPAddonExists: KKP itself has the add-on in this cluster; nothing is done until its Addon is gone.
	ReasonKKPAddonExists = "KKPAddonExists"
	// ReasonFailed: a call failed and is tried again; the message says which.
	ReasonFailed = "Failed"
)

// Conditions and reasons of an AddonCatalogue besides Ready.
const (
	// ConditionFetched says whether a git catalogue's repository could be read.
	ConditionFetched = "Fetched"
	// ConditionConflicting is True when another catalogue defines the same versions, owns an add-on, or reserves a name. It never
	// makes Ready False.
	ConditionConflicting = "Conflicting"
	// ConditionSourcesReady says whether the sources of a catalogue's versions can be fetched and rendered: by the seeds' checks and by
	// installations. It never makes Ready False. Its reasons are those of an installation's Fetched and Rendered besides the three below.
	ConditionSourcesReady = "SourcesReady"

	// ReasonSourcesReady: every Secret that a source names is copied to the seeds, each source was found by a seed and is rendered,
	// where that needs nothing of a user or a cluster, and no installation fails to fetch its content.
	ReasonSourcesReady = "SourcesReady"
	// ReasonSourcesUnchecked: no source is known to be wrong, and some are not checked yet, or no seed checks them.
	ReasonSourcesUnchecked = "SourcesUnchecked"
	// ReasonSecretNotCopied: a Secret that a source names is missing, or is not marked for sources.
	ReasonSecretNotCopied = "SecretNotCopied"

	// ReasonDistributed: every reachable seed has the catalogue.
	ReasonDistributed = "Distributed"
	// ReasonDistributing: some seeds don't have it yet; status.seeds names them. Or an edit or a commit waits, since much changed lately.
	ReasonDistributing = "Distributing"
	// ReasonInvalid: the spec is refused; the seeds keep the last valid one.
	ReasonInvalid = "Invalid"
	// ReasonSecretNotAllowed: annotation used-by of a Secret does not name the catalogue or set that refers to it. Versions of the catalogue
	// that need the Secret are left out; of the set the seeds keep the last good copy.
	ReasonSecretNotAllowed = "SecretNotAllowed"
	// ReasonWrongNamespace: catalogues count in the platform namespace only.
	ReasonWrongNamespace = "WrongNamespace"
	// ReasonRevisionNeedsApproval: a commit takes too many add-ons out; it waits for annotation approve-revision.
	ReasonRevisionNeedsApproval = "RevisionNeedsApproval"
	// ReasonMerged: a merged catalogue holds what the catalogues of the platform say about its add-on.
	ReasonMerged = "Merged"
	// ReasonDuplicate: another catalogue with precedence defines the same version.
	ReasonDuplicate = "Duplicate"
	// ReasonCoreReserved: a Core catalogue uses the name.
	ReasonCoreReserved = "CoreReserved"
	// ReasonOwnedByOther: the add-on belongs to another Custom catalogue, which brought it first or took it over.
	ReasonOwnedByOther = "OwnedByOther"
	// ReasonNoConflict: no other catalogue defines the same.
	ReasonNoConflict = "NoConflict"
	// ReasonTooLarge: the merged object of an add-on would be too large, and the last good one stays; or there is no room for the catalogue,
	// the commit or the set, beside the others.
	ReasonTooLarge = "TooLarge"
	// ReasonCoreNotAllowed: a generated catalogue says Core, and no Core catalogue in git owns it; it is not merged.
	ReasonCoreNotAllowed = "CoreNotAllowed"
	// ReasonGeneratedNameTaken: another AddonCatalogue has the name that one generated from a repository would get; that add-on does
	// not come, the rest of the commit does.
	ReasonGeneratedNameTaken = "GeneratedNameTaken"
	// ReasonSelected: an available catalogue lists what fits its cluster.
	ReasonSelected = "Selected"
)

// ConditionLeaving on a Core AddonCatalogue says whether clusters still have versions that its annotation leave-versions names. It is
// there while the annotation is.
const (
	ConditionLeaving = "Leaving"

	// ReasonVersionsInUse: installations have them, and leave them.
	ReasonVersionsInUse = "VersionsInUse"
	// ReasonVersionsLeft: no installation that is counted has any of them: the annotation has done its work.
	ReasonVersionsLeft = "VersionsLeft"
	// ReasonLeaveUnreadable: the annotation can't be read; no version is left for it.
	ReasonLeaveUnreadable = "LeaveUnreadable"
)

// Exclusion reasons in status.excluded of an available catalogue.
const (
	// ExcludedKKPVersion: the KKP version is outside of the version's range.
	ExcludedKKPVersion = "KKPVersion"
	// ExcludedK8sVersion: the cluster's Kubernetes version is outside of the version's range.
	ExcludedK8sVersion = "K8sVersion"
	// ExcludedConstraintInvalid: a range can't be parsed.
	ExcludedConstraintInvalid = "ConstraintInvalid"
	// ExcludedCore: core add-ons are not offered to users.
	ExcludedCore = "Core"
	// ExcludedDraft: the version is a draft, which only installations that name it exactly get.
	ExcludedDraft = "Draft"
)

// ConditionCompatible says whether the add-on's version exists and fits the cluster.
const (
	ConditionCompatible = "Compatible"

	// ReasonCompatible: the version fits.
	ReasonCompatible = "Compatible"
	// ReasonDeprecated: the version fits and is deprecated; the message says why, and which version to choose instead.
	ReasonDeprecated = "Deprecated"
	// ReasonAddonUnknown: no catalogue has an add-on of that name.
	ReasonAddonUnknown = "AddonUnknown"
	// ReasonVersionUnknown: the add-on has no such version, or none in the range.
	ReasonVersionUnknown = "VersionUnknown"
	// ReasonWithdrawn: the installed version left the catalogue; it stays installed.
	ReasonWithdrawn = "Withdrawn"
	// ReasonPinned: the catalogue has other content under the version than addonRef.digest names, and that content is applied, or on its
	// way: it is kept reconciled from its record. The condition is True.
	ReasonPinned = "Pinned"
	// ReasonContentGone: the catalogue has other content under the version than addonRef.digest names, and nothing of that is applied.
	ReasonContentGone = "ContentGone"
	// ReasonDowngradeRefused: the version is lower than the installed one.
	ReasonDowngradeRefused = "DowngradeRefused"
)

// ConditionValuesResolved says whether the values could be put together.
const (
	ConditionValuesResolved = "ValuesResolved"

	// ReasonValuesResolved: the values are complete and valid.
	ReasonValuesResolved = "ValuesResolved"
	// ReasonValuesInvalid: a value is refused; the message names the field.
	ReasonValuesInvalid = "ValuesInvalid"
	// ReasonValuesMissing: a referenced object is missing.
	ReasonValuesMissing = "ValuesMissing"
)

// Reasons of condition Fetched on an AddonInstallation.
const (
	// ReasonFetched: the content is there.
	ReasonFetched = "Fetched"
	// ReasonArtifactMoved: the source has something else under the same reference than what is applied, of an installation with
	// addonRef.digest: it is taken with the next change of the installation, or annotation reconcile-at. The condition is True.
	ReasonArtifactMoved = "ArtifactMoved"
	// ReasonFetching: the content is on its way.
	ReasonFetching = "Fetching"
	// ReasonFetchFailed: the source could not be reached or refused; tried again.
	ReasonFetchFailed = "FetchFailed"
	// ReasonArtifactNotFound: the source has no such ref, tag, digest, path, chart or version, or the Secret is missing.
	ReasonArtifactNotFound = "ArtifactNotFound"
	// ReasonArtifactRefused: the content breaks a limit or a rule; the message names it.
	ReasonArtifactRefused = "ArtifactRefused"
	// ReasonSourceNotServed: the source is of a kind that this release does not know.
	ReasonSourceNotServed = "SourceNotServed"
)

// ConditionRendered says whether the content became objects.
const (
	ConditionRendered = "Rendered"

	// ReasonRendered: the objects are there.
	ReasonRendered = "Rendered"
	// ReasonRendering: rendering takes a while; it goes on.
	ReasonRendering = "Rendering"
	// ReasonRenderFailed: a template or chart is wrong; the message names file and line.
	ReasonRenderFailed = "RenderFailed"
	// ReasonNothingToApply: every template renders to nothing for this cluster. The condition is True.
	ReasonNothingToApply = "NothingToApply"
	// ReasonNoManifests: the path holds nothing to render, or what is installed renders to nothing any more, and stays.
	ReasonNoManifests = "NoManifests"
	// ReasonDependenciesMissing: the chart names dependencies that it does not hold.
	ReasonDependenciesMissing = "DependenciesMissing"
	// ReasonLimitExceeded: the rendered objects are too many or too large, rendering takes more memory or time than it may, or the
	// records of the cluster take more than their budget on the seed. Of Ready: the cluster has more installations, or larger ones, than it may.
	ReasonLimitExceeded = "LimitExceeded"
	// ReasonNotAllowed: a Custom catalogue's add-on has a Namespace of Kubernetes itself, or what the seed keeps from it: something in
	// such a namespace, or labels of pod security. The message names it; nothing was written.
	ReasonNotAllowed = "NotAllowed"
)

// ConditionApplied says whether the user cluster has the objects.
const (
	ConditionApplied = "Applied"

	// ReasonApplied: the user cluster has all objects.
	ReasonApplied = "Applied"
	// ReasonNamespaceMissing: the target namespace does not exist and createNamespace is false.
	ReasonNamespaceMissing = "NamespaceMissing"
	// ReasonNamespaceTerminating: a namespace is being deleted; waited for.
	ReasonNamespaceTerminating = "NamespaceTerminating"
	// ReasonWaitingForOrder: others of the cluster come first, by slot or dependsOn, or go first where this one is being removed. The
	// message names them.
	ReasonWaitingForOrder = "WaitingForOrder"
	// ReasonDependencyMissing: dependsOn names what the cluster does not have. Holds a first apply.
	ReasonDependencyMissing = "DependencyMissing"
	// ReasonDependencyCycle: the installation depends on itself, by others that the message names. Holds a first apply.
	ReasonDependencyCycle = "DependencyCycle"
	// ReasonWaitingForStage: namespaces or CRDs are not ready yet.
	ReasonWaitingForStage = "WaitingForStage"
	// ReasonNotEstablished: a CRD was written and is not established after a minute; the message has the API server's reason. What
	// depends on it is not attempted, and it is looked at again.
	ReasonNotEstablished = "NotEstablished"
	// ReasonKindNotServed: the user cluster does not serve a kind. With method helm nothing is written; with go-template all other
	// objects are.
	ReasonKindNotServed = "KindNotServed"
	// ReasonObjectExists: an object exists already and has another owner. With method helm nothing is written where the object is a new one.
	ReasonObjectExists = "ObjectExists"
	// ReasonConflict: another field manager owns a field; the message names it.
	ReasonConflict = "Conflict"
	// ReasonImmutableField: a field that can't change has changed.
	ReasonImmutableField = "ImmutableField"
	// ReasonObjectInvalid: the user cluster refuses an object.
	ReasonObjectInvalid = "ObjectInvalid"
	// ReasonPruneNeedsApproval: a removal waits for annotation prune-approved.
	ReasonPruneNeedsApproval = "PruneNeedsApproval"
	// ReasonHookRunning: a hook of the chart runs; waited for. What comes after it is not applied yet.
	ReasonHookRunning = "HookRunning"
	// ReasonHookFailed: a hook of the chart failed, or did not end in time; tried again. The message names hook, event and object.
	ReasonHookFailed = "HookFailed"
	// ReasonRolledBack: an atomic upgrade failed and gave way to the version that was healthy last.
	ReasonRolledBack = "RolledBack"
	// ReasonAnnotationInvalid: an annotation of the installation can't be followed; the message says what to write instead. What is
	// installed is kept reconciled meanwhile.
	ReasonAnnotationInvalid = "AnnotationInvalid"
	// ReasonReleaseNameTaken: another installation, or somebody else in the user cluster, has a Helm release of the name.
	ReasonReleaseNameTaken = "ReleaseNameTaken"
)

// ConditionAccessReady says whether the credentials that the version asks for (template.access) are there. It is there only where a
// version asks for some. What is installed stays as it is where it is False; a version waits for them whole before it is applied.
const (
	ConditionAccessReady = "AccessReady"

	// ReasonAccessGranted: every credential is in its Secret, and far from its end.
	ReasonAccessGranted = "AccessGranted"
	// ReasonRenewalPending: a credential could not be renewed yet. The one before still counts, so this comes with True.
	ReasonRenewalPending = "RenewalPending"
	// ReasonExpired: a credential ended before it could be renewed.
	ReasonExpired = "Expired"
	// ReasonRightsRefused: the version asks for more than the platform lists for agents. The message names the rule and the label of the
	// ClusterRoles that list.
	ReasonRightsRefused = "RightsRefused"
	// ReasonHubUnknown: the platform gives no credentials out, since the manager was not told where agents reach the seed (--hub-server,
	// --hub-ca-file).
	ReasonHubUnknown = "HubUnknown"
	// ReasonSharedNamespace: other Clusters have the namespace too, whose objects the agent could reach.
	ReasonSharedNamespace = "SharedNamespace"
	// ReasonApprovalRequired: somebody has to approve the request for a certificate; the message has the command.
	ReasonApprovalRequired = "ApprovalRequired"
	// ReasonRequestDenied: the request for a certificate was denied, or its signer failed. It is asked for anew when annotation
	// reconcile-at changes.
	ReasonRequestDenied = "RequestDenied"
	// ReasonCertificateRefused: what was signed is not what was asked for, and is given to nobody.
	ReasonCertificateRefused = "CertificateRefused"
)

// ConditionHealthy says whether the objects work.
const (
	ConditionHealthy = "Healthy"

	// ReasonHealthy: every object is healthy.
	ReasonHealthy = "Healthy"
	// ReasonUnhealthy: an object failed; status.unhealthy names it.
	ReasonUnhealthy = "Unhealthy"
	// ReasonTimeout: objects were not healthy in time.
	ReasonTimeout = "Timeout"
	// ReasonNotWatched: the version asks for no judgement (template.health, mode None).
	ReasonNotWatched = "NotWatched"
	// ReasonRuleFailed: a rule of the version can't be evaluated on an object; status.unhealthy names both.
	ReasonRuleFailed = "RuleFailed"
	// ReasonLeaseStale: the Lease that shows the add-on alive was not renewed for as long as the version allows.
	ReasonLeaseStale = "LeaseStale"
	// ReasonLeaseMissing: there was no such Lease in time.
	ReasonLeaseMissing = "LeaseMissing"
)

// ConditionDrifted says whether objects in the user cluster differ from what was applied. It never makes Ready False.
const (
	ConditionDrifted = "Drifted"

	// ReasonNoDrift: nothing differs.
	ReasonNoDrift = "NoDrift"
	// ReasonRepaired: something differed and was put back.
	ReasonRepaired = "Repaired"
	// ReasonDriftShown: something differs, and strategy Once leaves it so.
	ReasonDriftShown = "DriftShown"
	// ReasonNewerContent: what is on record is older than what Trellis wrote, as after a restore of the seed; it is left as it is.
	ReasonNewerContent = "NewerContent"
	// ReasonFight: somebody changes an object again and again; it is left alone.
	ReasonFight = "Fight"
)

// ConditionAddonsReady on an available catalogue says whether the cluster has its core add-ons, so that roll-outs of machines
// can wait for it. Unknown: whether it is to have one can't be told.
const (
	ConditionAddonsReady = "AddonsReady"

	// ReasonCoreAddonsReady: every core add-on that a catalogue has is Ready.
	ReasonCoreAddonsReady = "CoreAddonsReady"
	// ReasonCoreAddonsNotReady: some core add-ons are not Ready; the message names them.
	ReasonCoreAddonsNotReady = "CoreAddonsNotReady"
	// ReasonCoreSetUnknown: a field of the Cluster or the custom core list can't be read; core add-ons stay as they are.
	ReasonCoreSetUnknown = "CoreSetUnknown"
	// ReasonNameTaken: somebody's installation has the name of a core add-on; it is left alone. Of condition AccessReady: somebody's account,
	// role or binding has the name of one that the agent would have.
	ReasonNameTaken = "NameTaken"
)

// ConditionUpgradeHeld on the available catalogue of a Cluster of Cluster API says whether an upgrade of it waits for add-ons. Its
// transition is when the present stage began.
const (
	ConditionUpgradeHeld = "UpgradeHeld"

	// ReasonBeforeControlPlane: the control plane waits until add-ons are at versions that fit the next Kubernetes too.
	ReasonBeforeControlPlane = "BeforeControlPlane"
	// ReasonBeforeWorkers: workers wait until add-ons are Ready at what the control plane has.
	ReasonBeforeWorkers = "BeforeWorkers"
	// ReasonNotUpgrading: no upgrade is pending.
	ReasonNotUpgrading = "NotUpgrading"
	// ReasonControlPlane: the control plane is being upgraded.
	ReasonControlPlane = "ControlPlane"
	// ReasonReleased: the add-ons are ready for the upgrade, which goes on.
	ReasonReleased = "Released"
	// ReasonTimedOut: it went on at --upgrade-hold-timeout, although add-ons were not right.
	ReasonTimedOut = "TimedOut"
	// ReasonOverridden: somebody let it go on, by annotation upgrade-hold or by taking the hook off.
	ReasonOverridden = "Overridden"
	// ReasonNotHonoured: the control plane moved under the hook: Cluster API has its feature gate RuntimeSDK off, or is older than 1.10.
	ReasonNotHonoured = "NotHonoured"
	// ReasonNotHoldable: the Cluster has no topology, or no version that can be read.
	ReasonNotHoldable = "NotHoldable"
)

// ConditionDeletionBlocked on an AddonInstallation is True while it is being deleted and may not go. It is treated as living.
const (
	ConditionDeletionBlocked = "DeletionBlocked"

	// ReasonInCoreSet: it is a core add-on of its cluster.
	ReasonInCoreSet = "InCoreSet"
)

// DeletionBlockedMessage says why a core installation stays, and how to remove it.
const DeletionBlockedMessage = "it is a core add-on of its cluster and stays: take it out of the set for good (the custom core " +
	"list, or the field of the Cluster that asks for it), and it goes"

// Reasons of events. Conditions say how things are, events that something changed.
const (
	// EventOffered: an available catalogue offers other versions than before.
	EventOffered = "Offered"
	// EventRequestRefused: an entry of annotation initial-installations can't be followed and stays on the Cluster.
	EventRequestRefused = "RequestRefused"
	// EventWithdrawn: an installed version left the catalogue; it stays installed.
	EventWithdrawn = "Withdrawn"
	// EventLeft: a core installation goes from a version that clusters are to leave to another, or all have left it.
	EventLeft = "Left"
	// EventApplied: objects were written to the user cluster.
	EventApplied = "Applied"
	// EventOrderGivenUp: an installation was applied, or removed, although others that come first are not ready, or not gone.
	EventOrderGivenUp = "OrderGivenUp"
	// EventAdopted: a Helm release that was there before is taken over.
	EventAdopted = "Adopted"
	// EventReleaseChanged: somebody made revisions of the Helm release by hand.
	EventReleaseChanged = "ReleaseChanged"
	// EventReleaseUnreadable: a Helm release that is taken over can't be read, or says what can't be true.
	EventReleaseUnreadable = "ReleaseUnreadable"
	// EventRolledBack: an atomic upgrade failed, and the version that was healthy last is back.
	EventRolledBack = "RolledBack"
	// EventRecordDamaged: the newest release record can't be read; everything is applied anew on top of the one before.
	EventRecordDamaged = "RecordDamaged"
	// EventFieldsTaken: fields of another field manager were removed, since the API server refuses them together with what the add-on wants.
	EventFieldsTaken = "FieldsTaken"
	// EventShared: an object of the whole cluster is shared with another installation of the add-on, or no longer.
	EventShared = "Shared"
	// EventRepaired: an object that drifted was put back.
	EventRepaired = "Repaired"
	// EventObjectsKept: objects stay after a removal or a prune, since they are marked in the user cluster to be kept.
	EventObjectsKept = "ObjectsKept"
	// EventNamespaceKept: a namespace that was made for add-ons stays after a removal, since something else is in it, or can't be looked for.
	EventNamespaceKept = "NamespaceKept"
	// EventJobKept: a Job ended, and the user cluster refuses the time after which it would be deleted.
	EventJobKept = "JobKept"
	// EventNonDeterministic: a second rendering of equal inputs gave something else; the first one's objects stay.
	EventNonDeterministic = "NonDeterministic"
	// EventDeletionBlocked: a core installation, or the namespace of a living cluster, is being deleted.
	EventDeletionBlocked = "DeletionBlocked"
	// EventNothingFits: no version of a core add-on fits its cluster; the installed one stays.
	EventNothingFits = "NothingFits"
	// EventCoreSetUnknown: whether a cluster is to have a core add-on can't be told.
	EventCoreSetUnknown = "CoreSetUnknown"
	// EventListRefused: the custom core list, or the list of what the platform says of its clusters, can't be read.
	EventListRefused = "ListRefused"
	// EventAddonUnknown: the custom core list names an add-on that no catalogue has.
	EventAddonUnknown = "AddonUnknown"
	// EventListGone: the list of what the platform says of its clusters was deleted; templates see nothing of it any more.
	EventListGone = "ListGone"
	// EventUpgradeWaits: an upgrade of the Cluster, or a stage of it, begins to wait for add-ons; the message names them.
	EventUpgradeWaits = "UpgradeWaits"
	// EventUpgradeNotHeld: an upgrade went on at its timeout; the message names the add-ons that were not right.
	EventUpgradeNotHeld = "UpgradeNotHeld"
	// EventHookSkipped: a hook of the removal had nowhere to run any more, and was left out.
	EventHookSkipped = "HookSkipped"
	// EventRemoved: the installation was removed from the user cluster.
	EventRemoved = "Removed"
	// EventLeftBehind: the Cluster is being deleted, and what was to be removed before was not in time, can't be read from its record, or its
	// API server does not answer; it goes with the cluster, or stays. Of a Cluster, or a copy of an AddonSet, that is being deleted:
	// finalizers of others held an installation for too long, and were taken off.
	EventLeftBehind = "LeftBehind"
	// EventConflict: another catalogue defines the same version, owns the add-on, or reserves the name.
	EventConflict = "Conflict"
	// EventChanged: a version of an add-on has other content than before under the same name.
	EventChanged = "Changed"
	// EventTakeOverIgnored: annotation take-over was set before owners of add-ons were known, as at the upgrade, and does not count.
	EventTakeOverIgnored = "TakeOverIgnored"
	// EventFetched: a git catalogue took another commit.
	EventFetched = "Fetched"
	// EventRolloutStarted: an AddonSet has a new revision, which begins to roll on the seed.
	EventRolloutStarted = "RolloutStarted"
	// EventGroupOpened: the clusters of a group begin to move.
	EventGroupOpened = "GroupOpened"
	// EventHalted: more clusters failed than maxFailures allows; nothing moves.
	EventHalted = "Halted"
	// EventCompleted: nothing of an AddonSet is left to move.
	EventCompleted = "Completed"
)

// Reasons of Ready of an AddonSet besides Paused and Invalid.
const (
	// ReasonComplete: nothing is left to move. Clusters that failed (no more than maxFailures allows), are sick, away or blocked are in the message.
	ReasonComplete = "Complete"
	// ReasonRollingOut: clusters are moving.
	ReasonRollingOut = "RollingOut"
	// ReasonHalted: more clusters failed than maxFailures allows; nothing moves.
	ReasonHalted = "Halted"
	// ReasonAwaitingApproval: the next group waits for annotation approve.
	ReasonAwaitingApproval = "AwaitingApproval"
	// ReasonNoEvidence: no cluster of a group so far has the revision, so nothing shows that it works; the next group waits for annotation
	// approve.
	ReasonNoEvidence = "NoEvidence"
	// ReasonBlocked: in each selected cluster that can be reached and is not paused some item can't be carried out.
	ReasonBlocked = "Blocked"
	// ReasonNoClusterSelected: clusters exist, and the set selects none of them.
	ReasonNoClusterSelected = "NoClusterSelected"
	// ReasonRemovalNeedsApproval: removals wait for annotation removal-approved.
	ReasonRemovalNeedsApproval = "RemovalNeedsApproval"
	// ReasonNotConfirmed: the set is being deleted, made installations, and has no annotation confirm-deletion (DeletionBlocked).
	ReasonNotConfirmed = "NotConfirmed"
	// ReasonSeedsBehind: seeds don't have the set yet, or don't answer.
	ReasonSeedsBehind = "SeedsBehind"
)

// Reasons of clusters in status.clusters of an AddonSet, besides those of installations and NameTaken: an installation that is not
// the set's has the item's name, or installs its add-on in that namespace.
const (
	// ReasonSourceMoves: the version's source has no fixed content (a git branch, an image without a tag), which can't be staged.
	ReasonSourceMoves = "SourceMoves"
	// ReasonSetUnreadable: another set may want the item, and what that says can't be gone by: its copy was edited on the seed, or can't
	// be read.
	ReasonSetUnreadable = "SetUnreadable"
	// ReasonLeftOut: annotation leave-out names the cluster.
	ReasonLeftOut = "LeftOut"
)

// Causes, in fields cause and as reasons of clusters of an AddonSet: the user cluster, and not the add-on, may be at fault. A cluster with
// one is sick and not failed, so that it halts no other, until a second one has the same.
const (
	// ReasonUnschedulable: no node is found for a pod, for example because nodes are cordoned or full.
	ReasonUnschedulable = "Unschedulable"
	// ReasonRequestsTooLarge: a pod requests more than any node of the user cluster has.
	ReasonRequestsTooLarge = "RequestsTooLarge"
	// ReasonSchedulingGated: a pod has scheduling gates, which a webhook of the user cluster may have added.
	ReasonSchedulingGated = "SchedulingGated"
	// ReasonQuotaExceeded: a ResourceQuota of the user cluster refuses objects or pods.
	ReasonQuotaExceeded = "QuotaExceeded"
	// ReasonLimitRange: a LimitRange of the user cluster refuses objects or pods.
	ReasonLimitRange = "LimitRange"
	// ReasonPodSecurity: a namespace of the user cluster enforces a pod security standard that pods violate.
	ReasonPodSecurity = "PodSecurity"
	// ReasonPolicyDenied: a ValidatingAdmissionPolicy of the user cluster refuses objects or pods.
	ReasonPolicyDenied = "PolicyDenied"
	// ReasonWebhookRefused: an admission webhook of the user cluster refuses objects or pods, or does not answer.
	ReasonWebhookRefused = "WebhookRefused"
	// ReasonObjectOfOthers: an object of the add-on exists in the user cluster, and has another owner.
	ReasonObjectOfOthers = "ObjectOfOthers"
	// ReasonFieldOfOthers: another manager owns a field that the add-on sets.
	ReasonFieldOfOthers = "FieldOfOthers"
	// ReasonBeingDeleted: a namespace or an object of the add-on is being deleted in the user cluster, and does not go.
	ReasonBeingDeleted = "BeingDeleted"
)
