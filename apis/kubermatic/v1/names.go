package v1

// Prefix begins every label and annotation of Trellis.
const Prefix = "addons.kubermatic.k8c.io/"

// Labels.
const (
	// LabelRole distinguishes the roles of AddonCatalogues.
	LabelRole = Prefix + "role"
	// LabelManagedBy names the controller that owns an object of Trellis.
	LabelManagedBy = Prefix + "managed-by"
	// LabelUse defines what Trellis may read a Secret or ConfigMap for.
	LabelUse = Prefix + "use"
	// LabelInstallation is on every applied object; its value identifies the installation that owns the object.
	LabelInstallation = Prefix + "installation"
	// LabelCreatedBy is on a Namespace that an installation created.
	LabelCreatedBy = Prefix + "created-by"
	// LabelUserCluster is on the ConfigMap that records the user cluster of a Cluster; its value is the UID of the user cluster's
	// namespace kube-system.
	LabelUserCluster = Prefix + "user-cluster"
	// LabelPullSecret = "true" on the manifest of a Namespace makes Trellis copy the platform's pull Secret there.
	LabelPullSecret = Prefix + "pull-secret"
	// LabelAgents on a ClusterRole of a seed makes its rules the limit of the rights that agents of add-ons may get on this seed. Value "core"
	// applies to add-ons of Core catalogues, and value "custom" to all add-ons.
	LabelAgents = Prefix + "agents"
	// LabelAccess is on objects that Trellis creates on a seed for an agent; its value is the ID of the installation.
	LabelAccess = Prefix + "access"
	// LabelAddon is on CertificateSigningRequests for agents; its value is the name of the add-on. It is absent if the name is too long for
	// a label.
	LabelAddon = Prefix + "addon"
	// LabelCluster is on CertificateSigningRequests for agents; its value is the name of the Cluster. It is absent if the name is too long
	// for a label.
	LabelCluster = Prefix + "cluster"
	// LabelClusterNamespace is on CertificateSigningRequests for agents; its value is the namespace of the Cluster.
	LabelClusterNamespace = Prefix + "cluster-namespace"
	// LabelSet on an AddonInstallation is the name of the AddonSet that created it.
	LabelSet = Prefix + "set"
)

// Facts of Clusters. Selectors of AddonSets and of the core list match facts like labels. Facts override labels of the same name.
const (
	// FactSeed is the name of the seed.
	FactSeed = Prefix + "seed"
	// FactDatacenter is the name of the datacenter, for KKP's Clusters.
	FactDatacenter = Prefix + "datacenter"
	// FactProvider is the cloud provider, by KKP's name.
	FactProvider = Prefix + "provider"
	// FactNamespace is the namespace of the Cluster's installations.
	FactNamespace = Prefix + "namespace"
	// FactName is the Cluster's name.
	FactName = Prefix + "name"
	// FactKind is the Cluster's kind, with its group if it is not KKP's.
	FactKind = Prefix + "kind"
)

// Values of label role. Catalogues that people write have no such label.
const (
	// RoleGenerated is on a catalogue that Trellis generated from a git catalogue, on the master.
	RoleGenerated = "generated"
	// RoleMerged is on a catalogue with all versions of one add-on, on every seed.
	RoleMerged = "merged"
	// RoleAvailable is on a catalogue with the add-ons that fit one cluster, in the cluster's namespace.
	RoleAvailable = "available"
)

// RoleCopy is the value of label role on copies of AddonSets, on seeds.
const RoleCopy = "copy"

// Values of label agents.
const (
	// AgentsCore is for agents of add-ons of Core catalogues.
	AgentsCore = "core"
	// AgentsCustom is for agents of all add-ons.
	AgentsCustom = "custom"
)

// ManagedByCoreAddons is the value of label managed-by on core installations.
const ManagedByCoreAddons = "core-addon-controller"

// ManagedBySets is the value of label managed-by on the installations of AddonSets.
const ManagedBySets = "addon-set-controller"

// Values of label use.
const (
	// UseSource is on Secrets with credentials or authorities for sources.
	UseSource = "source"
	// UseValues is on Secrets and ConfigMaps with values.
	UseValues = "values"
	// UsePull is on the Secret of --image-pull-secret, which is copied to user clusters.
	UsePull = "pull"
)

// Annotations.
const (
	// AnnotationReconcileAt starts a reconciliation when its value changes, without caches and back-off.
	AnnotationReconcileAt = Prefix + "reconcile-at"
	// AnnotationRotateAt on an installation makes Trellis issue new credentials for the hub when its value changes. Previous credentials are
	// invalid from then on.
	AnnotationRotateAt = Prefix + "rotate-at"
	// AnnotationAccessOf on objects that Trellis creates on a seed for an agent is the name of the installation.
	AnnotationAccessOf = Prefix + "access-of"
	// AnnotationAllowDowngrade = "true" allows a lower version.
	AnnotationAllowDowngrade = Prefix + "allow-downgrade"
	// AnnotationAdopt = "true" adopts existing objects.
	AnnotationAdopt = Prefix + "adopt"
	// AnnotationAdoptManagers, together with annotation adopt, names field managers, separated by commas. These managers count as tools, like
	// kubectl. If the add-on does not set a field of theirs in an adopted object, Trellis removes the field.
	AnnotationAdoptManagers = Prefix + "adopt-managers"
	// AnnotationAdopted is on a CustomResourceDefinition that existed before an installation adopted it. It is not removed with the
	// installation.
	AnnotationAdopted = Prefix + "adopted"
	// AnnotationLeftBy is on a CustomResourceDefinition that an installation left when it was removed. Its value names the catalogue and the
	// add-on. An installation of that add-on adopts the definition.
	AnnotationLeftBy = Prefix + "left-by"
	// AnnotationSkipHooks = "true" on an installation skips the hooks of its removal.
	AnnotationSkipHooks = Prefix + "skip-hooks"
	// AnnotationHook on a Job or Pod of a go-template add-on runs it before or after an event instead of applying it. The value is one or
	// several of pre-delete, pre-install, post-install, pre-upgrade and post-upgrade, separated by commas.
	AnnotationHook = Prefix + "hook"
	// AnnotationHookRun on an object of a hook names the attempt that it was created for.
	AnnotationHookRun = Prefix + "hook-run"
	// AnnotationPruneApproved contains the hash that approves a guarded prune.
	AnnotationPruneApproved = Prefix + "prune-approved"
	// AnnotationAllowPrune = "true" approves prunes of many objects. Namespaces, PersistentVolumeClaims and definitions in use still need
	// annotation prune-approved.
	AnnotationAllowPrune = Prefix + "allow-prune"
	// AnnotationPullSecret is on a copy of the platform's pull Secret. Its value is a random text that Trellis recorded before it wrote the
	// copy.
	AnnotationPullSecret = Prefix + "pull-secret-copy"
	// AnnotationOnDelete = "orphan" on a manifest keeps the object when the installation is deleted.
	AnnotationOnDelete = Prefix + "on-delete"
	// AnnotationUpdate on a manifest is "create-only" or "recreate".
	AnnotationUpdate = Prefix + "update"
	// AnnotationConfirmSeed on a Seed contains the UID of kube-system that identifies the seed from now on.
	AnnotationConfirmSeed = Prefix + "confirm-seed"
	// AnnotationConfirmCluster on a Cluster contains the UID of kube-system that identifies its user cluster from now on.
	AnnotationConfirmCluster = Prefix + "confirm-cluster"
	// AnnotationUpgradeHold = "off" on a Cluster of Cluster API lets its upgrades continue without waiting for add-ons.
	AnnotationUpgradeHold = Prefix + "upgrade-hold"
	// AnnotationConfirmDeletion on a Core AddonCatalogue or an AddonSet contains its name, and allows its deletion.
	AnnotationConfirmDeletion = Prefix + "confirm-deletion"
	// AnnotationApproveRevision on a git catalogue contains the commit that may remove many add-ons.
	AnnotationApproveRevision = Prefix + "approve-revision"
	// AnnotationTakeOver on a Custom catalogue that people wrote names add-ons of other Custom catalogues, separated by commas. The
	// catalogue adds versions to them, or replaces versions, and becomes their owner. Setting it requires verb manage-core.
	AnnotationTakeOver = Prefix + "take-over"
	// AnnotationRevision on a generated catalogue is the commit that last changed it.
	AnnotationRevision = Prefix + "revision"
	// AnnotationStub is the number of bytes that a whole object would take. It is only on the cached remainder of an object that exceeds the
	// limits of a manager's cache, and never on an object of an API server.
	AnnotationStub = Prefix + "stub"
	// AnnotationHosts on a source Secret lists the hosts that the Secret may be sent to, separated by commas.
	AnnotationHosts = Prefix + "hosts"
	// AnnotationUsedBy on a Secret of the platform lists the AddonSets and AddonCatalogues that may use the Secret, separated by commas, such
	// as "AddonSet/monitoring, AddonCatalogue/samples"; "*" is all. On a copy on a seed it lists only AddonSets.
	AnnotationUsedBy = Prefix + "used-by"
	// AnnotationDigest on merged, available and generated catalogues and core installations is the digest of the written content.
	AnnotationDigest = Prefix + "digest"
	// AnnotationGeneration on merged, available and generated catalogues is the generation that annotation digest was written for. If the
	// object has another generation, another client edited it.
	AnnotationGeneration = Prefix + "generation"
	// AnnotationStatusFields on available catalogues lists the fields of the status that annotation digest covers. If the status has other
	// fields, another client edited it.
	AnnotationStatusFields = Prefix + "status-fields"
	// AnnotationInitialInstallations on a Cluster, or on the ClusterTemplate that it is created from, is a JSON list of installations that
	// Trellis creates once.
	AnnotationInitialInstallations = Prefix + "initial-installations"
	// AnnotationRequest on an AddonInstallation is the digest of the entry of annotation initial-installations that it was created for.
	AnnotationRequest = Prefix + "request"
	// AnnotationCoreOrigin on a core installation names the origin that added it to the core set: "rule" or "list".
	AnnotationCoreOrigin = Prefix + "core-origin"
	// AnnotationKKPVersion on merged catalogues is the platform's KKP version.
	AnnotationKKPVersion = Prefix + "kkp-version"
	// AnnotationVersions on merged catalogues is JSON: version -> {digest, catalogue, git}.
	AnnotationVersions = Prefix + "versions"
	// AnnotationSecrets on merged catalogues names the Secrets of their sources, separated by commas. Seeds keep the copies of these
	// Secrets until the merged catalogue changes.
	AnnotationSecrets = Prefix + "secrets"
	// AnnotationMark on merged catalogues proves that the distributor wrote them. It is a keyed hash with the key in Secret
	// addon-catalogue-key.
	AnnotationMark = Prefix + "mark"
	// AnnotationLeaveVersions on a Core catalogue names versions of core add-ons that all clusters must leave, even for a lower version. The
	// value is "addon=version", or several of these, separated by commas.
	AnnotationLeaveVersions = Prefix + "leave-versions"
	// AnnotationLeftVersions on merged catalogues is a JSON list of the versions that clusters must leave.
	AnnotationLeftVersions = Prefix + "left-versions"
	// AnnotationMoved on an installation of a set is when the set last wrote it, in RFC 3339 with nanoseconds.
	AnnotationMoved = Prefix + "moved"
	// AnnotationSick = "true" on an installation of a set: the installation was not Ready before the set last wrote it.
	AnnotationSick = Prefix + "sick"
	// AnnotationPlatformValues on an installation of a set grants it values of the platform, by name and keyed digest of a Secret.
	AnnotationPlatformValues = Prefix + "platform-values"
	// AnnotationSeed on a copy of an AddonSet is the name of the seed that the copy is for.
	AnnotationSeed = Prefix + "seed"
	// AnnotationCreated on a copy of an AddonSet is when the set itself was created, in RFC 3339, so that recreating the copy does not
	// change its age.
	AnnotationCreated = Prefix + "created"
	// AnnotationGate on a copy of an AddonSet is "<revision>/<groups>". The second part is the number of groups of that revision that the seed
	// may open.
	AnnotationGate = Prefix + "gate"
	// AnnotationApprove on an AddonSet is "<revision>/<group>". It opens the group and all groups before it.
	AnnotationApprove = Prefix + "approve"
	// AnnotationRemovalApproved on an AddonSet contains status.removal.word, and approves the removal of that many installations.
	AnnotationRemovalApproved = Prefix + "removal-approved"
	// AnnotationLeaveOut on an AddonSet names clusters, separated by commas. The set does not wait for them, and counts them neither as
	// failures nor as evidence. A Cluster of KKP is named by its name or namespace, and any other Cluster by "<namespace>/<name>". A namespace
	// alone names all clusters in it. These clusters get the add-ons after all other clusters of their group. "<cluster>:<item>" leaves only
	// this item out of the cluster, and "<cluster>:<item>=<version>" pins its version there.
	AnnotationLeaveOut = Prefix + "leave-out"
	// AnnotationDeviations on a Cluster is a JSON list of items of sets that its owner leaves out, or pins to a version: {item, set, optOut,
	// version, by, why}. It works for items with allowOptOut.
	AnnotationDeviations = Prefix + "deviations"
)

// Values of annotation core-origin.
const (
	// OriginRule is on a core installation that a rule requires.
	OriginRule = "rule"
	// OriginList is on a core installation that the custom core list requires.
	OriginList = "list"
)

// UpgradeHoldOff is the value of annotation upgrade-hold.
const UpgradeHoldOff = "off"

// Finalizers.
const (
	// FinalizerCoreProtection keeps a core AddonInstallation while it is in the core set of its cluster.
	FinalizerCoreProtection = "kubermatic.k8c.io/core-addon-protection"
	// FinalizerCleanupInstallation keeps an AddonInstallation until the user cluster is clean.
	FinalizerCleanupInstallation = "kubermatic.k8c.io/cleanup-addon-installation"
	// FinalizerCleanupNamespace keeps a Cluster until its namespace is gone.
	FinalizerCleanupNamespace = "kubermatic.k8c.io/cleanup-namespace"
	// FinalizerCleanupSet keeps an AddonSet until its installations are handled as spec.removal specifies.
	FinalizerCleanupSet = "kubermatic.k8c.io/cleanup-addon-set"
)

// ConfigMapUsage is the ConfigMap, in the platform namespace of the master, that counts installations by seed and version.
const ConfigMapUsage = "addon-usage"

// ConfigMapOwners is the ConfigMap, in the platform namespace of the master, with the catalogues that own each add-on of Custom catalogues.
const ConfigMapOwners = "addon-owners"

// ConfigMapSeeds is the ConfigMap, in the platform namespace of the master, with the identity of each seed.
const ConfigMapSeeds = "addon-seeds"

// PreviousSecretUsers is the key of ConfigMap addon-seeds with the AddonSets and AddonCatalogues that used Secrets before annotation
// used-by was required, one in each line.
const PreviousSecretUsers = "former_secret_users"

// ConfigMapSourceChecks is the ConfigMap, in the platform namespace of each seed, with the results of the seed's checks of sources, for
// the distributor.
const ConfigMapSourceChecks = "addon-source-checks"

// SourceShare, a key of ConfigMap addon-source-checks, lists the seeds that check sources; the distributor writes it.
const SourceShare = "share"

// ConfigMapQuery is the ConfigMap, in namespace kube-public of each seed, that says how clients reach the query endpoint and which
// authority they trust. The seed's manager writes its data.
const ConfigMapQuery = "addon-query"

// Keys of ConfigMap addon-query.
const (
	// QueryURL is the https URL of the query endpoint; absent: clients reach it by its Service.
	QueryURL = "url"
	// QueryNamespace is the namespace of the query endpoint's Service.
	QueryNamespace = "namespace"
	// QueryService is the name of the query endpoint's Service.
	QueryService = "service"
	// QueryPort is the port of the query endpoint's Service.
	QueryPort = "port"
	// QueryServerName is a host name, or address, of the query endpoint's certificate: clients that reach it by its Service verify it.
	QueryServerName = "serverName"
	// QueryCA has the certificate authorities of the query endpoint's certificate, in PEM.
	QueryCA = "ca.crt"
)

// SecretCatalogueKey, in the platform namespace of each seed, contains the key of the marks on merged catalogues, in field "key". The
// distributor creates it, and the seed's manager reads it.
const (
	SecretCatalogueKey = "addon-catalogue-key"
	MarkKeyField       = "key"
)

// VerbControl on Trellis's kinds lets a user write objects of controllers, such as catalogues with a role and core installations.
const VerbControl = "control"

// VerbManageCore on addoncatalogues and addonsets lets a user create, change and delete catalogues and sets of type Core, which affect
// every cluster.
const VerbManageCore = "manage-core"

// AvailableCatalogue is the name of the available catalogue in a cluster namespace.
const AvailableCatalogue = "available"
