package v1

// Prefix starts every label and annotation of Trellis.
const Prefix = "addons.kubermatic.k8c.io/"

// Labels.
const (
	// LabelRole tells the roles of AddonCatalogues apart.
	LabelRole = Prefix + "role"
	// LabelManagedBy names the controller that owns one of our objects.
	LabelManagedBy = Prefix + "managed-by"
	// LabelUse says what a Secret or ConfigMap may be read for.
	LabelUse = Prefix + "use"
	// LabelInstallation is on every applied object; its value is ownership.Owner's label value.
	LabelInstallation = Prefix + "installation"
	// LabelCreatedBy is on a Namespace that an installation made.
	LabelCreatedBy = Prefix + "created-by"
	// LabelUserCluster is on the ConfigMap that says which user cluster a Cluster has; its value is the UID of the user cluster's
	// namespace kube-system.
	LabelUserCluster = Prefix + "user-cluster"
	// LabelPullSecret = "true" on the manifest of a Namespace has the platform's pull Secret copied there.
	LabelPullSecret = Prefix + "pull-secret"
	// LabelAgents on a ClusterRole of a seed has its rules list what agents of add-ons may be given there: AgentsCore, for add-ons of
	// Core catalogues, or AgentsCustom, for all.
	LabelAgents = Prefix + "agents"
	// LabelAccess is on what is made on a seed for an agent; its value is the ID of the installation.
	LabelAccess = Prefix + "access"
	// LabelSet on an AddonInstallation is the name of the AddonSet that made it.
	LabelSet = Prefix + "set"
)

// Facts of Clusters, which count as labels in selectors of AddonSets and of the core list, above labels of the same name.
const (
	// FactSeed is the name of the seed.
	FactSeed = Prefix + "seed"
	// FactDatacenter is the datacenter's name, of KKP's Clusters.
	FactDatacenter = Prefix + "datacenter"
	// FactProvider is the cloud provider's name, in KKP's word.
	FactProvider = Prefix + "provider"
	// FactNamespace is the namespace of the Cluster's installations.
	FactNamespace = Prefix + "namespace"
	// FactName is the Cluster's name.
	FactName = Prefix + "name"
	// FactKind is the Cluster's kind, with its group where that is not KKP's.
	FactKind = Prefix + "kind"
)

// Roles of AddonCatalogues, values of LabelRole. Authored ones have no such label.
const (
	RoleGenerated = "generated"
	RoleMerged    = "merged"
	RoleAvailable = "available"
)

// RoleCopy is the value of LabelRole on copies of AddonSets, on seeds.
const RoleCopy = "copy"

// Values of LabelAgents.
const (
	AgentsCore   = "core"
	AgentsCustom = "custom"
)

// ManagedByCoreAddons is the value of LabelManagedBy on core installations.
const ManagedByCoreAddons = "core-addon-controller"

// ManagedBySets is the value of LabelManagedBy on the installations of AddonSets.
const ManagedBySets = "addon-set-controller"

// Values of LabelUse.
const (
	UseSource = "source"
	UseValues = "values"
	// UsePull is on the Secret of --image-pull-secret, which is copied to user clusters.
	UsePull = "pull"
)

// Annotations.
const (
	// AnnotationReconcileAt reconciles now when its value changes, past caches and back-off.
	AnnotationReconcileAt = Prefix + "reconcile-at"
	// AnnotationRotateAt on an installation has its credentials for the hub made anew when its value changes: those before are worth
	// nothing from then on.
	AnnotationRotateAt = Prefix + "rotate-at"
	// AnnotationAccessOf on what is made on a seed for an agent is the name of the installation.
	AnnotationAccessOf = Prefix + "access-of"
	// AnnotationAllowDowngrade = "true" lets a lower version in.
	AnnotationAllowDowngrade = Prefix + "allow-downgrade"
	// AnnotationAdopt = "true" takes over objects that exist.
	AnnotationAdopt = Prefix + "adopt"
	// AnnotationAdoptManagers beside AnnotationAdopt names field managers, separated by commas: what they wrote of an object that is
	// taken over counts as a tool's, as kubectl's does, so that what the add-on lacks of it goes.
	AnnotationAdoptManagers = Prefix + "adopt-managers"
	// AnnotationAdopted is on a CustomResourceDefinition that was there before an installation took it over: it is not
	// removed with it.
	AnnotationAdopted = Prefix + "adopted"
	// AnnotationLeftBy is on a CustomResourceDefinition that an installation left when it was removed: the catalogue and the add-on. An
	// installation of that add-on takes it over.
	AnnotationLeftBy = Prefix + "left-by"
	// AnnotationSkipHooks = "true" on an installation removes it without running the hooks of its removal.
	AnnotationSkipHooks = Prefix + "skip-hooks"
	// AnnotationHook on a Job or Pod of a go-template add-on has it run around an event, and not applied: pre-delete, pre-install,
	// post-install, pre-upgrade, post-upgrade, or several of them, separated by commas.
	AnnotationHook = Prefix + "hook"
	// AnnotationHookRun on an object of a hook says for which attempt it was made.
	AnnotationHookRun = Prefix + "hook-run"
	// AnnotationPruneApproved holds the hash that lets a guarded prune go on.
	AnnotationPruneApproved = Prefix + "prune-approved"
	// AnnotationAllowPrune = "true" lets prunes of many objects go on. Namespaces, PersistentVolumeClaims and definitions in use still
	// wait for AnnotationPruneApproved.
	AnnotationAllowPrune = Prefix + "allow-prune"
	// AnnotationPullSecret is on a copy of the platform's pull Secret: the nonce that was recorded before it was written.
	AnnotationPullSecret = Prefix + "pull-secret-copy"
	// AnnotationOnDelete = "orphan" on a manifest keeps the object when the installation goes.
	AnnotationOnDelete = Prefix + "on-delete"
	// AnnotationUpdate = "create-only" or "recreate" on a manifest.
	AnnotationUpdate = Prefix + "update"
	// AnnotationConfirmSeed on a Seed holds the UID of kube-system that is to be taken for the seed's from now on.
	AnnotationConfirmSeed = Prefix + "confirm-seed"
	// AnnotationConfirmCluster on a Cluster holds the UID of kube-system that is to be taken for its user cluster's from now on.
	AnnotationConfirmCluster = Prefix + "confirm-cluster"
	// AnnotationUpgradeHold = "off" on a Cluster of Cluster API: no upgrade of it waits for add-ons.
	AnnotationUpgradeHold = Prefix + "upgrade-hold"
	// AnnotationConfirmDeletion on a Core AddonCatalogue or an AddonSet, with its name, lets it be deleted.
	AnnotationConfirmDeletion = Prefix + "confirm-deletion"
	// AnnotationApproveRevision on a git catalogue holds the commit that may take many add-ons out.
	AnnotationApproveRevision = Prefix + "approve-revision"
	// AnnotationTakeOver on a Custom catalogue that people wrote names add-ons of other Custom catalogues that it adds versions to, or
	// replaces, separated by commas. It becomes their owner. To set it takes verb manage-core.
	AnnotationTakeOver = Prefix + "take-over"
	// AnnotationRevision on a generated catalogue is the commit that last changed it.
	AnnotationRevision = Prefix + "revision"
	// AnnotationStub is on what a manager's cache holds of an object that it has no room for, and never on an object of an API server: how
	// many bytes the whole object would take.
	AnnotationStub = Prefix + "stub"
	// AnnotationHosts on a source Secret limits the hosts that it is sent to, a comma list.
	AnnotationHosts = Prefix + "hosts"
	// AnnotationUsedBy on a Secret of the platform names the AddonSets and AddonCatalogues that may use it, a comma list such as
	// "AddonSet/monitoring, AddonCatalogue/samples"; "*" is all. On a copy on a seed it has AddonSets only.
	AnnotationUsedBy = Prefix + "used-by"
	// AnnotationDigest on merged, available and generated catalogues and core installations covers what was written.
	AnnotationDigest = Prefix + "digest"
	// AnnotationGeneration on merged, available and generated catalogues is the generation that AnnotationDigest stands for:
	// an object at another one was edited by somebody else.
	AnnotationGeneration = Prefix + "generation"
	// AnnotationStatusFields on available catalogues tells which fields of the status AnnotationDigest stands for: with
	// others, the status was edited by somebody else.
	AnnotationStatusFields = Prefix + "status-fields"
	// AnnotationInitialInstallations on a Cluster, and so on a ClusterTemplate, is a JSON list of installations to be made
	// once.
	AnnotationInitialInstallations = Prefix + "initial-installations"
	// AnnotationRequest on an AddonInstallation is the digest of the entry of AnnotationInitialInstallations it was made for.
	AnnotationRequest = Prefix + "request"
	// AnnotationCoreOrigin on a core installation says what brought it into the set: OriginRule or OriginList.
	AnnotationCoreOrigin = Prefix + "core-origin"
	// AnnotationKKPVersion on merged catalogues is the platform's KKP version.
	AnnotationKKPVersion = Prefix + "kkp-version"
	// AnnotationVersions on merged catalogues is JSON: version -> {digest, catalogue, git}.
	AnnotationVersions = Prefix + "versions"
	// AnnotationSecrets on merged catalogues names the Secrets of their sources, separated by commas. Seeds keep the copies of these for as
	// long as a merged catalogue stays as it was.
	AnnotationSecrets = Prefix + "secrets"
	// AnnotationMark on merged catalogues shows that the distributor wrote them: a keyed hash with the key in Secret
	// SecretCatalogueKey.
	AnnotationMark = Prefix + "mark"
	// AnnotationLeaveVersions on a Core catalogue names versions of core add-ons that all clusters are to leave, also for a lower
	// one: "addon=version", separated by commas.
	AnnotationLeaveVersions = Prefix + "leave-versions"
	// AnnotationLeftVersions on merged catalogues is a JSON list of the versions that are to be left.
	AnnotationLeftVersions = Prefix + "left-versions"
	// AnnotationMoved on an installation of a set is when the set last wrote it, in RFC 3339 with nanoseconds.
	AnnotationMoved = Prefix + "moved"
	// AnnotationSick = "true" on an installation of a set: it was not Ready before the set last wrote it.
	AnnotationSick = Prefix + "sick"
	// AnnotationPlatformValues on an installation of a set grants it values of the platform, by name and keyed digest of a Secret.
	AnnotationPlatformValues = Prefix + "platform-values"
	// AnnotationSeed on a copy of an AddonSet is the name of the seed it was made for.
	AnnotationSeed = Prefix + "seed"
	// AnnotationCreated on a copy of an AddonSet is when the set itself was created, in RFC 3339: a copy that is made anew is not
	// younger for it.
	AnnotationCreated = Prefix + "created"
	// AnnotationGate on a copy of an AddonSet is "<revision>/<groups>": how many groups of that revision the seed may open.
	AnnotationGate = Prefix + "gate"
	// AnnotationApprove on an AddonSet is "<revision>/<group>": it opens the group and those before it.
	AnnotationApprove = Prefix + "approve"
	// AnnotationRemovalApproved on an AddonSet holds status.removal.word, and lets that many installations go.
	AnnotationRemovalApproved = Prefix + "removal-approved"
	// AnnotationLeaveOut on an AddonSet names clusters, separated by commas. The set does not wait for them, and counts them neither as
	// failures nor as evidence. A Cluster of KKP is named by its name or namespace, any other by "<namespace>/<name>"; a namespace alone
	// names all clusters in it. They get the add-ons after all others of their group.
	AnnotationLeaveOut = Prefix + "leave-out"
)

// Values of AnnotationCoreOrigin.
const (
	OriginRule = "rule"
	OriginList = "list"
)

// UpgradeHoldOff is the value of AnnotationUpgradeHold.
const UpgradeHoldOff = "off"

// Finalizers.
const (
	// FinalizerCoreProtection holds a core AddonInstallation while it is in the set of its cluster.
	FinalizerCoreProtection = "kubermatic.k8c.io/core-addon-protection"
	// FinalizerCleanupInstallation holds an AddonInstallation until the user cluster is clean.
	FinalizerCleanupInstallation = "kubermatic.k8c.io/cleanup-addon-installation"
	// FinalizerCleanupNamespace holds a Cluster until its namespace is gone.
	FinalizerCleanupNamespace = "kubermatic.k8c.io/cleanup-namespace"
	// FinalizerCleanupSet holds an AddonSet until what it made is gone, as spec.removal says.
	FinalizerCleanupSet = "kubermatic.k8c.io/cleanup-addon-set"
)

// ConfigMapUsage is the ConfigMap, in the platform namespace of the master, that says how many installations on each seed have which versions.
const ConfigMapUsage = "addon-usage"

// ConfigMapOwners is the ConfigMap, in the platform namespace of the master, with the catalogues that own each add-on of Custom catalogues.
const ConfigMapOwners = "addon-owners"

// ConfigMapSeeds is the ConfigMap, in the platform namespace of the master, with the identity of each seed.
const ConfigMapSeeds = "addon-seeds"

// FormerSecretUsers is the key of ConfigMap addon-seeds with the AddonSets and AddonCatalogues that used Secrets before AnnotationUsedBy was
// asked for: a line each.
const FormerSecretUsers = "former_secret_users"

// ConfigMapSourceChecks is the ConfigMap, in the platform namespace of each seed, with what the seed found out about the sources of versions,
// for the distributor.
const ConfigMapSourceChecks = "addon-source-checks"

// SourceShare, a key of ConfigMap addon-source-checks, says which seeds check sources; the distributor writes it.
const SourceShare = "share"

// SecretCatalogueKey, in the platform namespace of each seed, has the key of the marks on merged catalogues, in MarkKeyField. The
// distributor makes it, and the seed's manager reads it.
const (
	SecretCatalogueKey = "addon-catalogue-key"
	MarkKeyField       = "key"
)

// VerbControl on our kinds lets a user write what belongs to controllers: catalogues with a role, core installations.
const VerbControl = "control"

// VerbManageCore on addoncatalogues and addonsets lets a user make, change and delete those of type Core, which every cluster follows.
const VerbManageCore = "manage-core"

// AvailableCatalogue is the name of the available catalogue in a cluster namespace.
const AvailableCatalogue = "available"
