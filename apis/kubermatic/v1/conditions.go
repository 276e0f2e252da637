package v1

// ConditionReady is the summary, on all kinds. True: everything that the current generation requests exists and is healthy. False: a
// condition fails, and Ready has the reason of the first one in the order of the steps. Unknown: the cluster can't be reached.
const ConditionReady = "Ready"

// Reasons of Ready that no other condition has.
const (
	// ReasonReady: everything exists and is healthy.
	ReasonReady = "Ready"
	// ReasonPaused: spec.paused is set, or the Cluster is paused; nothing is done.
	ReasonPaused = "Paused"
	// ReasonProgressing: work is in progress and needs no action.
	ReasonProgressing = "Progressing"
	// ReasonClusterUnknown: no Cluster, or more than one, has this namespace, or the name in spec.clusterName; the message lists the existing
	// Clusters.
	ReasonClusterUnknown = "ClusterUnknown"
	// ReasonNamespaceUnset: neither spec.targetNamespace nor the catalogue names the namespace for the add-on.
	ReasonNamespaceUnset = "NamespaceUnset"
	// ReasonClusterNotReady: the Cluster has no version or no API server yet.
	ReasonClusterNotReady = "ClusterNotReady"
	// ReasonClusterUnreachable: the user cluster's API server does not answer.
	ReasonClusterUnreachable = "ClusterUnreachable"
	// ReasonClusterMisbehaves: the user cluster's API server sends invalid or unbounded answers, which Trellis ignores.
	ReasonClusterMisbehaves = "ClusterMisbehaves"
	// ReasonKubeconfigInvalid: the user cluster's kubeconfig is missing, or uses a feature that is not allowed.
	ReasonKubeconfigInvalid = "KubeconfigInvalid"
	// ReasonClusterSwapped: the kubeconfig leads to another user cluster than before; nothing is written there, and no finalizer is
	// removed.
	ReasonClusterSwapped = "ClusterSwapped"
	// ReasonClusterShared: the kubeconfig leads to the user cluster of another Cluster, which had this user cluster first.
	ReasonClusterShared = "ClusterShared"
	// ReasonRemoving: the installation is being removed from the user cluster.
	ReasonRemoving = "Removing"
	// ReasonRemovalBlocked: an object in the user cluster can't be removed; the message names the object.
	ReasonRemovalBlocked = "RemovalBlocked"
	// ReasonRecordFromNewerRelease: a newer Trellis wrote the release record; nothing is changed.
	ReasonRecordFromNewerRelease = "RecordFromNewerRelease"
	// ReasonKKPAddonExists: KKP itself has the add-on in this cluster; nothing is done until KKP's Addon is gone.
	ReasonKKPAddonExists = "KKPAddonExists"
	// ReasonFailed: a call failed and is retried; the message names the call.
	ReasonFailed = "Failed"
)

// Conditions and reasons of an AddonCatalogue other than Ready.
const (
	// ConditionFetched reports whether a git catalogue's repository could be read.
	ConditionFetched = "Fetched"
	// ConditionConflicting is True when another catalogue defines the same versions, owns an add-on, or reserves a name. It never makes
	// Ready False.
	ConditionConflicting = "Conflicting"
	// ConditionSourcesReady reports whether the sources of a catalogue's versions can be fetched and rendered, according to the seeds' checks
	// and to installations. It never makes Ready False. Its reasons are those of an installation's Fetched and Rendered, and the three below.
	ConditionSourcesReady = "SourcesReady"

	// ReasonSourcesReady: every Secret that a source names is copied to the seeds. A seed found each source, and rendered each version that
	// needs no data of a user or a cluster. No installation fails to fetch its content.
	ReasonSourcesReady = "SourcesReady"
	// ReasonSourcesUnchecked: no error in a source is known, and some sources are not checked yet, or no seed checks sources.
	ReasonSourcesUnchecked = "SourcesUnchecked"
	// ReasonSecretNotCopied: a Secret that a source names is missing, or is not labelled for sources.
	ReasonSecretNotCopied = "SecretNotCopied"

	// ReasonDistributed: every reachable seed has the catalogue.
	ReasonDistributed = "Distributed"
	// ReasonDistributing: some seeds don't have the catalogue yet; status.seeds names them. Or an edit or a commit waits because of many
	// recent changes.
	ReasonDistributing = "Distributing"
	// ReasonInvalid: the spec is refused; the seeds keep the last valid spec.
	ReasonInvalid = "Invalid"
	// ReasonSecretNotAllowed: annotation used-by of a Secret does not name the catalogue or set that refers to it. Versions of the
	// catalogue that need the Secret are left out; the seeds keep the last good copy of the set.
	ReasonSecretNotAllowed = "SecretNotAllowed"
	// ReasonWrongNamespace: the catalogue is not in the platform namespace, and is ignored.
	ReasonWrongNamespace = "WrongNamespace"
	// ReasonRevisionNeedsApproval: a commit removes too many add-ons, and waits for annotation approve-revision.
	ReasonRevisionNeedsApproval = "RevisionNeedsApproval"
	// ReasonMerged: a merged catalogue contains the definitions of its add-on in the platform's catalogues.
	ReasonMerged = "Merged"
	// ReasonDuplicate: another catalogue with precedence defines the same version.
	ReasonDuplicate = "Duplicate"
	// ReasonCoreReserved: a Core catalogue uses the name.
	ReasonCoreReserved = "CoreReserved"
	// ReasonOwnedByOther: the add-on belongs to another Custom catalogue, which added it first or took it over by annotation take-over.
	ReasonOwnedByOther = "OwnedByOther"
	// ReasonNoConflict: no other catalogue defines the same versions.
	ReasonNoConflict = "NoConflict"
	// ReasonTooLarge: the merged object of an add-on would be too large, and the last good object stays. Or the catalogue, the commit or the
	// set exceeds a limit that all catalogues or sets share.
	ReasonTooLarge = "TooLarge"
	// ReasonCoreNotAllowed: a generated catalogue has type Core, and no Core catalogue in git owns it; it is not merged.
	ReasonCoreNotAllowed = "CoreNotAllowed"
	// ReasonGeneratedNameTaken: another AddonCatalogue has the name of a generated catalogue. The add-on of the generated catalogue is left
	// out, and the rest of the commit is used.
	ReasonGeneratedNameTaken = "GeneratedNameTaken"
	// ReasonSelected: an available catalogue lists the versions that fit its cluster.
	ReasonSelected = "Selected"
)

// ConditionLeaving, on a Core AddonCatalogue, reports whether clusters still have versions that its annotation leave-versions names. It
// exists as long as the annotation.
const (
	ConditionLeaving = "Leaving"

	// ReasonVersionsInUse: installations have such versions, and are moving to other versions.
	ReasonVersionsInUse = "VersionsInUse"
	// ReasonVersionsLeft: no counted installation has any of these versions, and the annotation can be removed.
	ReasonVersionsLeft = "VersionsLeft"
	// ReasonLeaveUnreadable: the annotation can't be read, and has no effect.
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
	// ExcludedDraft: the version is a draft. Only installations that name it exactly get it.
	ExcludedDraft = "Draft"
)

// ConditionCompatible reports whether the add-on's version exists and fits the cluster.
const (
	ConditionCompatible = "Compatible"

	// ReasonCompatible: the version fits.
	ReasonCompatible = "Compatible"
	// ReasonDeprecated: the version fits and is deprecated; the message has the reason, and the version to choose instead.
	ReasonDeprecated = "Deprecated"
	// ReasonAddonUnknown: no catalogue has an add-on of that name.
	ReasonAddonUnknown = "AddonUnknown"
	// ReasonVersionUnknown: the add-on has no such version, or none in the range.
	ReasonVersionUnknown = "VersionUnknown"
	// ReasonWithdrawn: the catalogue no longer has the installed version; the version stays installed.
	ReasonWithdrawn = "Withdrawn"
	// ReasonPinned: the catalogue's content of the version is not the content that addonRef.digest names. The pinned content is applied, or
	// being applied, and is reconciled from its record. The condition is True.
	ReasonPinned = "Pinned"
	// ReasonContentGone: the catalogue's content of the version is not the content that addonRef.digest names, and the pinned content is not
	// applied.
	ReasonContentGone = "ContentGone"
	// ReasonDowngradeRefused: the version is lower than the installed version.
	ReasonDowngradeRefused = "DowngradeRefused"
)

// ConditionValuesResolved reports whether the values could be resolved.
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
	// ReasonFetched: the content is available.
	ReasonFetched = "Fetched"
	// ReasonArtifactMoved: the installation has addonRef.digest, and the source now has other content under the same reference. The new
	// content is used at the next change of the installation, or of annotation reconcile-at. The condition is True.
	ReasonArtifactMoved = "ArtifactMoved"
	// ReasonFetching: the content is being fetched.
	ReasonFetching = "Fetching"
	// ReasonFetchFailed: the source could not be reached, or refused the request; the fetch is retried.
	ReasonFetchFailed = "FetchFailed"
	// ReasonArtifactNotFound: the source has no such ref, tag, digest, path, chart or version, or the Secret is missing.
	ReasonArtifactNotFound = "ArtifactNotFound"
	// ReasonArtifactRefused: the content exceeds a limit or breaks a rule; the message names the limit or rule.
	ReasonArtifactRefused = "ArtifactRefused"
	// ReasonSourceNotServed: the source is of a kind that this release does not know.
	ReasonSourceNotServed = "SourceNotServed"
)

// ConditionRendered reports whether the content was rendered to objects.
const (
	ConditionRendered = "Rendered"

	// ReasonRendered: the objects are rendered.
	ReasonRendered = "Rendered"
	// ReasonRendering: rendering takes a while, and continues.
	ReasonRendering = "Rendering"
	// ReasonRenderFailed: a template or chart is wrong; the message names file and line.
	ReasonRenderFailed = "RenderFailed"
	// ReasonNothingToApply: every template renders to nothing for this cluster. The condition is True.
	ReasonNothingToApply = "NothingToApply"
	// ReasonNoManifests: the path contains nothing to render. Or the installed version now renders to nothing, and its objects stay.
	ReasonNoManifests = "NoManifests"
	// ReasonDependenciesMissing: the chart names dependencies that it does not contain.
	ReasonDependenciesMissing = "DependenciesMissing"
	// ReasonLimitExceeded: the rendered objects are too many or too large, rendering exceeds its memory or time, or the records of the cluster
	// exceed their budget on the seed. As a reason of Ready: the cluster has more installations than allowed, or larger installations.
	ReasonLimitExceeded = "LimitExceeded"
	// ReasonNotAllowed: an add-on of a Custom catalogue has a Namespace of Kubernetes itself, or an object that the seed forbids. Such an
	// object is in one of these namespaces, or has labels of pod security. The message names the object, and nothing was written.
	ReasonNotAllowed = "NotAllowed"
)

// ConditionApplied reports whether the user cluster has the objects.
const (
	ConditionApplied = "Applied"

	// ReasonApplied: the user cluster has all objects.
	ReasonApplied = "Applied"
	// ReasonNamespaceMissing: the target namespace does not exist and createNamespace is false.
	ReasonNamespaceMissing = "NamespaceMissing"
	// ReasonNamespaceTerminating: a namespace is being deleted, and Trellis waits until it is gone.
	ReasonNamespaceTerminating = "NamespaceTerminating"
	// ReasonWaitingForOrder: other installations of the cluster precede this one, by slot or dependsOn, or have to be removed before this one.
	// The message names these installations.
	ReasonWaitingForOrder = "WaitingForOrder"
	// ReasonDependencyMissing: dependsOn names an installation that the cluster does not have. This delays only a first apply.
	ReasonDependencyMissing = "DependencyMissing"
	// ReasonDependencyCycle: the installation depends on itself, through other installations that the message names. This delays only a first
	// apply.
	ReasonDependencyCycle = "DependencyCycle"
	// ReasonWaitingForStage: namespaces or CRDs are not ready yet.
	ReasonWaitingForStage = "WaitingForStage"
	// ReasonNotEstablished: a CRD is not established a minute after it was written; the message has the API server's reason. Objects that
	// depend on the CRD are not applied, and Trellis checks the CRD again.
	ReasonNotEstablished = "NotEstablished"
	// ReasonKindNotServed: the user cluster does not serve a kind. With method helm, nothing is written. With go-template, all other objects
	// are written.
	ReasonKindNotServed = "KindNotServed"
	// ReasonObjectExists: an object already exists and has another owner. With method helm, nothing is written if the object is new.
	ReasonObjectExists = "ObjectExists"
	// ReasonConflict: another field manager owns a field; the message names the field.
	ReasonConflict = "Conflict"
	// ReasonImmutableField: the update changes an immutable field.
	ReasonImmutableField = "ImmutableField"
	// ReasonObjectInvalid: the user cluster refuses an object.
	ReasonObjectInvalid = "ObjectInvalid"
	// ReasonPruneNeedsApproval: a removal waits for annotation prune-approved.
	ReasonPruneNeedsApproval = "PruneNeedsApproval"
	// ReasonHookRunning: a hook of the chart runs; later objects are not applied yet.
	ReasonHookRunning = "HookRunning"
	// ReasonHookFailed: a hook of the chart failed, or did not end in time; it is retried. The message names hook, event and object.
	ReasonHookFailed = "HookFailed"
	// ReasonRolledBack: an atomic upgrade failed and was rolled back to the last healthy version.
	ReasonRolledBack = "RolledBack"
	// ReasonAnnotationInvalid: an annotation of the installation is invalid; the message says what to write instead. Installed objects
	// are still reconciled.
	ReasonAnnotationInvalid = "AnnotationInvalid"
	// ReasonReleaseNameTaken: another installation, or another client of the user cluster, has a Helm release of the name.
	ReasonReleaseNameTaken = "ReleaseNameTaken"
)

// ConditionAccessReady reports whether the credentials that the version requests (template.access) exist. Only versions that request
// credentials have this condition. While it is False, installed objects stay as they are. A version is applied only when all its
// credentials exist.
const (
	ConditionAccessReady = "AccessReady"

	// ReasonAccessGranted: every credential is in its Secret, and not about to expire.
	ReasonAccessGranted = "AccessGranted"
	// ReasonRenewalPending: a credential could not be renewed yet. The previous one is still valid, so the condition is True.
	ReasonRenewalPending = "RenewalPending"
	// ReasonExpired: a credential expired before it could be renewed.
	ReasonExpired = "Expired"
	// ReasonRightsRefused: the version requests more rights than the platform allows for agents. The message names the rule and the label
	// of the ClusterRoles that list allowed rights.
	ReasonRightsRefused = "RightsRefused"
	// ReasonHubUnknown: the platform issues no credentials, since the manager's flags don't name the address at which agents reach the seed
	// (--hub-server, --hub-ca-file).
	ReasonHubUnknown = "HubUnknown"
	// ReasonSharedNamespace: the namespace has other Clusters too, and the agent could reach their objects.
	ReasonSharedNamespace = "SharedNamespace"
	// ReasonApprovalRequired: an admin has to approve the request for a certificate; the message has the command.
	ReasonApprovalRequired = "ApprovalRequired"
	// ReasonRequestDenied: the request for a certificate was denied, or its signer failed. A new request is made when annotation
	// reconcile-at changes.
	ReasonRequestDenied = "RequestDenied"
	// ReasonCertificateRefused: the signed certificate does not match the request, and is not used.
	ReasonCertificateRefused = "CertificateRefused"
)

// ConditionHealthy reports whether the objects work.
const (
	ConditionHealthy = "Healthy"

	// ReasonHealthy: every object is healthy.
	ReasonHealthy = "Healthy"
	// ReasonUnhealthy: an object failed; status.unhealthy names it.
	ReasonUnhealthy = "Unhealthy"
	// ReasonTimeout: objects were not healthy in time.
	ReasonTimeout = "Timeout"
	// ReasonNotWatched: the version disables health checks (template.health, mode None).
	ReasonNotWatched = "NotWatched"
	// ReasonRuleFailed: a rule of the version can't be evaluated on an object; status.unhealthy names the rule and the object.
	ReasonRuleFailed = "RuleFailed"
	// ReasonLeaseStale: the Lease of the add-on was not renewed within the time that the version allows.
	ReasonLeaseStale = "LeaseStale"
	// ReasonLeaseMissing: the Lease of the add-on did not exist in time.
	ReasonLeaseMissing = "LeaseMissing"
)

// ConditionDrifted reports whether objects in the user cluster differ from the applied ones. It never makes Ready False.
const (
	ConditionDrifted = "Drifted"

	// ReasonNoDrift: no object differs.
	ReasonNoDrift = "NoDrift"
	// ReasonRepaired: an object differed and was repaired.
	ReasonRepaired = "Repaired"
	// ReasonDriftShown: an object differs, and strategy Once does not repair it.
	ReasonDriftShown = "DriftShown"
	// ReasonNewerContent: the record is older than the objects that Trellis wrote, for example after a restore of the seed; the objects
	// are left as they are.
	ReasonNewerContent = "NewerContent"
	// ReasonFight: another client changes an object again and again; Trellis no longer repairs it.
	ReasonFight = "Fight"
)

// ConditionAddonsReady, on an available catalogue, reports whether the cluster has its core add-ons, so that rollouts of machines can wait
// for these. Unknown: Trellis can't determine whether the cluster should have a core add-on.
const (
	ConditionAddonsReady = "AddonsReady"

	// ReasonCoreAddonsReady: every core add-on that a catalogue has is Ready.
	ReasonCoreAddonsReady = "CoreAddonsReady"
	// ReasonCoreAddonsNotReady: some core add-ons are not Ready; the message names them.
	ReasonCoreAddonsNotReady = "CoreAddonsNotReady"
	// ReasonCoreSetUnknown: a field of the Cluster or the custom core list can't be read; core add-ons stay as they are.
	ReasonCoreSetUnknown = "CoreSetUnknown"
	// ReasonNameTaken: an installation of a user has the name of a core add-on; the installation is not changed. As a reason of condition
	// AccessReady: an account, role or binding that Trellis did not create has a name that the agent needs.
	ReasonNameTaken = "NameTaken"
)

// ConditionUpgradeHeld, on the available catalogue of a Cluster of Cluster API, reports whether an upgrade of the Cluster waits for
// add-ons. Its transition time is when the present stage began.
const (
	ConditionUpgradeHeld = "UpgradeHeld"

	// ReasonBeforeControlPlane: the control plane waits until add-ons are at versions that fit the next Kubernetes version too.
	ReasonBeforeControlPlane = "BeforeControlPlane"
	// ReasonBeforeWorkers: workers wait until add-ons are Ready for the control plane's version.
	ReasonBeforeWorkers = "BeforeWorkers"
	// ReasonNotUpgrading: no upgrade is pending.
	ReasonNotUpgrading = "NotUpgrading"
	// ReasonControlPlane: the control plane is being upgraded.
	ReasonControlPlane = "ControlPlane"
	// ReasonReleased: the add-ons are ready for the upgrade, which continues.
	ReasonReleased = "Released"
	// ReasonTimedOut: the upgrade continued after --upgrade-hold-timeout, although add-ons were not ready.
	ReasonTimedOut = "TimedOut"
	// ReasonOverridden: annotation upgrade-hold released the upgrade, or another client removed the hook.
	ReasonOverridden = "Overridden"
	// ReasonNotHonoured: the control plane changed although the hook should have held it. Cluster API has its feature gate RuntimeSDK off,
	// or is older than 1.10.
	ReasonNotHonoured = "NotHonoured"
	// ReasonNotHoldable: the Cluster has no topology, or no readable version.
	ReasonNotHoldable = "NotHoldable"
)

// ConditionDeletionBlocked, on an AddonInstallation, is True while the installation is being deleted and must stay. The installation is
// reconciled as before.
const (
	ConditionDeletionBlocked = "DeletionBlocked"

	// ReasonInCoreSet: the installation is a core add-on of its cluster.
	ReasonInCoreSet = "InCoreSet"
)

// DeletionBlockedMessage says why a core installation stays, and how to remove it.
const DeletionBlockedMessage = "the cluster needs this core add-on, so the installation is not deleted: to delete it, remove the add-on " +
	"from the set of core add-ons (the custom core list, or the field of the Cluster that requests it)"

// Reasons of events. Conditions report states, events report changes.
const (
	// EventOffered: the versions that an available catalogue offers changed.
	EventOffered = "Offered"
	// EventRequestRefused: an entry of annotation initial-installations is invalid and stays on the Cluster.
	EventRequestRefused = "RequestRefused"
	// EventWithdrawn: the catalogue no longer has an installed version; it stays installed.
	EventWithdrawn = "Withdrawn"
	// EventLeft: a core installation moves away from a version that clusters must leave, or all installations have left it.
	EventLeft = "Left"
	// EventApplied: objects were written to the user cluster.
	EventApplied = "Applied"
	// EventUpdateAvailable: a newer version than the installed or requested one fits the cluster; once for each newer version.
	EventUpdateAvailable = "UpdateAvailable"
	// EventOrderGivenUp: an installation was applied, or removed, although installations that precede it are not ready, or not gone.
	EventOrderGivenUp = "OrderGivenUp"
	// EventAdopted: an existing Helm release is adopted.
	EventAdopted = "Adopted"
	// EventReleaseChanged: another client created revisions of the Helm release.
	EventReleaseChanged = "ReleaseChanged"
	// EventReleaseUnreadable: an adopted Helm release can't be read, or its content contradicts its name.
	EventReleaseUnreadable = "ReleaseUnreadable"
	// EventRolledBack: an atomic upgrade failed and was rolled back to the last healthy version.
	EventRolledBack = "RolledBack"
	// EventRecordDamaged: the newest release record can't be read; everything is applied again on top of the previous record.
	EventRecordDamaged = "RecordDamaged"
	// EventFieldsTaken: fields of another field manager were removed, since the API server refuses them together with the add-on's
	// fields.
	EventFieldsTaken = "FieldsTaken"
	// EventShared: an installation begins or ceases to share a cluster-scoped object with another installation of the add-on.
	EventShared = "Shared"
	// EventRepaired: an object that drifted was repaired.
	EventRepaired = "Repaired"
	// EventObjectsKept: objects stay after a removal or a prune, since they are marked in the user cluster as retained.
	EventObjectsKept = "ObjectsKept"
	// EventNamespaceKept: a namespace that was created for add-ons stays after a removal, since it contains other objects, or can't be
	// searched.
	EventNamespaceKept = "NamespaceKept"
	// EventJobKept: a Job ended, and the user cluster refuses its ttlSecondsAfterFinished, so the Job is not deleted.
	EventJobKept = "JobKept"
	// EventNonDeterministic: a second rendering of the same inputs differed; the objects of the first rendering stay.
	EventNonDeterministic = "NonDeterministic"
	// EventDeletionBlocked: a core installation, or the namespace of an existing cluster, is being deleted.
	EventDeletionBlocked = "DeletionBlocked"
	// EventNothingFits: no version of a core add-on fits its cluster; the installed version stays.
	EventNothingFits = "NothingFits"
	// EventCoreSetUnknown: Trellis can't determine whether a cluster should have a core add-on.
	EventCoreSetUnknown = "CoreSetUnknown"
	// EventListRefused: the custom core list, or the list of the platform's data about its clusters, can't be read.
	EventListRefused = "ListRefused"
	// EventAddonUnknown: the custom core list names an add-on that no catalogue has.
	EventAddonUnknown = "AddonUnknown"
	// EventListGone: the list of the platform's data about its clusters was deleted; templates no longer see it.
	EventListGone = "ListGone"
	// EventUpgradeWaits: an upgrade of the Cluster, or a stage of it, begins to wait for add-ons; the message names them.
	EventUpgradeWaits = "UpgradeWaits"
	// EventUpgradeNotHeld: an upgrade continued at its timeout; the message names the add-ons that were not ready.
	EventUpgradeNotHeld = "UpgradeNotHeld"
	// EventHookSkipped: the namespace or service account of a removal's hook is gone, and the hook was skipped.
	EventHookSkipped = "HookSkipped"
	// EventRemoved: the installation was removed from the user cluster.
	EventRemoved = "Removed"
	// EventLeftBehind: the Cluster is being deleted, and objects that should have been removed before it are left. They were not removed in
	// time, can't be read from their record, or the API server does not answer. They disappear with the cluster, or stay. On a Cluster, or a
	// copy of an AddonSet, that is being deleted: finalizers of other programs delayed an installation for too long, and Trellis removed them.
	EventLeftBehind = "LeftBehind"
	// EventConflict: another catalogue defines the same version, owns the add-on, or reserves the name.
	EventConflict = "Conflict"
	// EventChanged: the content of an add-on's version changed under the same name.
	EventChanged = "Changed"
	// EventTakeOverIgnored: annotation take-over was set before the owners of add-ons were known, for example before the upgrade from a
	// release without owners. It is ignored.
	EventTakeOverIgnored = "TakeOverIgnored"
	// EventFetched: a git catalogue uses another commit.
	EventFetched = "Fetched"
	// EventRolloutStarted: an AddonSet has a new revision, whose rollout starts on the seed.
	EventRolloutStarted = "RolloutStarted"
	// EventGroupOpened: the clusters of a group begin to move.
	EventGroupOpened = "GroupOpened"
	// EventHalted: more clusters failed than maxFailures allows; the rollout stops.
	EventHalted = "Halted"
	// EventCompleted: an AddonSet has nothing left to roll out.
	EventCompleted = "Completed"
)

// Reasons of Ready of an AddonSet other than Paused and Invalid.
const (
	// ReasonComplete: nothing is left to roll out. The message names clusters that failed (no more than maxFailures allows), or are sick,
	// away or blocked.
	ReasonComplete = "Complete"
	// ReasonRollingOut: clusters are moving.
	ReasonRollingOut = "RollingOut"
	// ReasonHalted: more clusters failed than maxFailures allows; the rollout stops.
	ReasonHalted = "Halted"
	// ReasonAwaitingApproval: the next group waits for annotation approve.
	ReasonAwaitingApproval = "AwaitingApproval"
	// ReasonNoEvidence: no cluster of a group has the revision yet, so nothing shows that it works; the next group waits for annotation
	// approve.
	ReasonNoEvidence = "NoEvidence"
	// ReasonBlocked: an item can't be applied in any selected cluster that is reachable and not paused.
	ReasonBlocked = "Blocked"
	// ReasonNoClusterSelected: clusters exist, and the set selects none of them.
	ReasonNoClusterSelected = "NoClusterSelected"
	// ReasonRemovalNeedsApproval: removals wait for annotation removal-approved.
	ReasonRemovalNeedsApproval = "RemovalNeedsApproval"
	// ReasonNotConfirmed: the set is being deleted, has created installations, and has no annotation confirm-deletion (DeletionBlocked).
	ReasonNotConfirmed = "NotConfirmed"
	// ReasonSeedsBehind: seeds don't have the set yet, or don't answer.
	ReasonSeedsBehind = "SeedsBehind"
)

// Reasons of clusters in status.clusters of an AddonSet. Reasons of installations appear there too. With reason NameTaken, an installation
// that does not belong to the set has the item's name, or installs its add-on in that namespace.
const (
	// ReasonSourceMoves: the version's source has no fixed content (a git branch, an image without a tag). Such content can't roll out in
	// waves.
	ReasonSourceMoves = "SourceMoves"
	// ReasonSetUnreadable: another set may request the item, and the copy of that set was edited on the seed, or can't be read.
	ReasonSetUnreadable = "SetUnreadable"
	// ReasonLeftOut: annotation leave-out names the cluster.
	ReasonLeftOut = "LeftOut"
	// ReasonDeviates: the cluster leaves an item of the set out, or pins its version.
	ReasonDeviates = "Deviates"
)

// Causes, in fields cause and as reasons of clusters of an AddonSet. With a cause, the user cluster, and not the add-on, may be at fault.
// The cluster is then sick and not failed, so that it does not halt the rollout. It is failed once a second cluster has the same cause.
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
	// ReasonBeingDeleted: a namespace or an object of the add-on is being deleted in the user cluster, and the deletion does not finish.
	ReasonBeingDeleted = "BeingDeleted"
)
