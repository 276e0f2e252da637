package calls

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
)

// Stage is a step of a rollout: its objects are written in parallel, once the previous stage is done.
type Stage int

const (
	// StageFoundation contains or defines other objects, so the rollout waits for it: Active, Established.
	StageFoundation Stage = iota
	// stageIdentity: classes, accounts and rights, which workloads need from the first moment.
	stageIdentity
	stageRest
	// StageGates: objects that the API server calls for other objects. They block until their backends run.
	StageGates
	// StageCount is how many stages there are.
	StageCount
)

var stageOfKind = map[schema.GroupKind]Stage{
	ownership.NamespaceGK:  StageFoundation,
	ownership.DefinitionGK: StageFoundation,

	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:              stageIdentity,
	{Group: "storage.k8s.io", Kind: "StorageClass"}:                  stageIdentity,
	{Group: "storage.k8s.io", Kind: "VolumeAttributesClass"}:         stageIdentity,
	{Group: "snapshot.storage.k8s.io", Kind: "VolumeSnapshotClass"}:  stageIdentity,
	{Group: "networking.k8s.io", Kind: "IngressClass"}:               stageIdentity,
	{Group: "gateway.networking.k8s.io", Kind: "GatewayClass"}:       stageIdentity,
	{Group: "node.k8s.io", Kind: "RuntimeClass"}:                     stageIdentity,
	{Group: "resource.k8s.io", Kind: "DeviceClass"}:                  stageIdentity,
	{Kind: "ServiceAccount"}:                                         stageIdentity,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:        stageIdentity,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}: stageIdentity,
	{Group: "rbac.authorization.k8s.io", Kind: "Role"}:               stageIdentity,
	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:        stageIdentity,

	APIServiceGK: StageGates,
}

var stageOfGroup = map[string]Stage{
	"admissionregistration.k8s.io": StageGates,
}

// StageOf is the stage of a kind.
func StageOf(kind schema.GroupKind) Stage {
	if at, found := stageOfKind[kind]; found {
		return at
	}
	if at, found := stageOfGroup[kind.Group]; found {
		return at
	}
	return stageRest
}

var builtinGroups = map[string]bool{
	"": true, "apps": true, "batch": true, "autoscaling": true, "policy": true, "extensions": true,
	"admissionregistration.k8s.io": true, "apiextensions.k8s.io": true, "apiregistration.k8s.io": true,
	"authentication.k8s.io": true, "authorization.k8s.io": true, "certificates.k8s.io": true, "coordination.k8s.io": true,
	"discovery.k8s.io": true, "events.k8s.io": true, "flowcontrol.apiserver.k8s.io": true,
	"internal.apiserver.k8s.io": true, "networking.k8s.io": true, "node.k8s.io": true, "rbac.authorization.k8s.io": true,
	"resource.k8s.io": true, "scheduling.k8s.io": true, "storage.k8s.io": true, "storagemigration.k8s.io": true,
}

// IsCustom says whether a kind is of a CustomResourceDefinition or an aggregated API.
func IsCustom(kind schema.GroupKind) bool { return !builtinGroups[kind.Group] }
