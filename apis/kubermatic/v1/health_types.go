package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// HealthMode says what has to be well for an add-on to be healthy.
//
// +kubebuilder:validation:Enum=Workloads;Lease;Rules;None
type HealthMode string

const (
	// HealthByWorkloads takes each object of the add-on, by what Kubernetes' own conventions say of its kind, or by a rule for it.
	HealthByWorkloads HealthMode = "Workloads"
	// HealthByLease takes a Lease that the add-on renews, and no object.
	HealthByLease HealthMode = "Lease"
	// HealthByRules takes the objects that rules are about, and no other.
	HealthByRules HealthMode = "Rules"
	// HealthUnwatched takes nothing: what is applied is healthy.
	HealthUnwatched HealthMode = "None"
)

// HealthCheck says by what an add-on is judged to be healthy. In every mode Jobs and Pods are looked at until they ended: that they go
// then is no drift.
//
// +kubebuilder:validation:XValidation:rule="!has(self.rules) || !has(self.mode) || self.mode in ['Workloads', 'Rules']",message="rules need mode Workloads or Rules"
// +kubebuilder:validation:XValidation:rule="!has(self.lease) || has(self.mode) && self.mode == 'Lease'",message="lease needs mode Lease"
// +kubebuilder:validation:XValidation:rule="!has(self.mode) || self.mode != 'Rules' || has(self.rules) && size(self.rules) > 0",message="mode Rules needs rules"
type HealthCheck struct {
	// mode is Workloads, Lease, Rules or None. Absent: Workloads.
	// +optional
	Mode HealthMode `json:"mode,omitempty"`
	// lease says which Lease counts, in mode Lease.
	// +optional
	Lease *HealthLease `json:"lease,omitempty"`
	// rules say of kinds, or of single objects, when they are healthy.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Rules []HealthRule `json:"rules,omitempty"`
}

// HealthLease is a Lease in the target namespace, which the add-on renews while it works.
type HealthLease struct {
	// name of the Lease. Absent: the name of the add-on.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$`
	Name string `json:"name,omitempty"`
	// staleAfter is how long it may stay as it is, from 30s to 1h, by the clock of who looks. Absent: 5m.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(\.[0-9]{1,3})?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('30s') && duration(self) <= duration('1h')",message="staleAfter must be between 30s and 1h"
	StaleAfter *metav1.Duration `json:"staleAfter,omitempty"`
}

// HealthRule says when objects are healthy, in CEL (the Common Expression Language, with optional fields). Expressions see the object as
// self; a field that is not there yet counts as progress.
//
// +kubebuilder:validation:XValidation:rule="self.kind != 'Secret' || self.apiVersion != 'v1'",message="no rule reads Secrets"
// +kubebuilder:validation:XValidation:rule="!has(self.namespace) || has(self.name)",message="namespace needs a name"
type HealthRule struct {
	// apiVersion of the kind, such as apps/v1.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	APIVersion string `json:"apiVersion,omitempty"`
	// kind is the Kind, such as Deployment.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?$`
	Kind string `json:"kind,omitempty"`
	// name of the one object of the user cluster that the rule is about. Absent: it is about each of the kind that the add-on has.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[^/%]+$`
	Name string `json:"name,omitempty"`
	// namespace of that object; none for kinds without.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespace string `json:"namespace,omitempty"`
	// healthy holds for what works.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Healthy string `json:"healthy,omitempty"`
	// failed holds for what will not work by waiting.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Failed string `json:"failed,omitempty"`
	// message is a text about what is not healthy. It sees status and metadata, without annotations.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}
