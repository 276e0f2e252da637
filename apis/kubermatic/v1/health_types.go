package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// HealthMode says what decides whether an add-on is healthy.
//
// +kubebuilder:validation:Enum=Workloads;Lease;Rules;None
type HealthMode string

const (
	// HealthByWorkloads evaluates each object of the add-on, by Kubernetes' own conventions for its kind, or by a rule for it.
	HealthByWorkloads HealthMode = "Workloads"
	// HealthByLease evaluates a Lease that the add-on renews, and no object.
	HealthByLease HealthMode = "Lease"
	// HealthByRules evaluates only the objects that rules match.
	HealthByRules HealthMode = "Rules"
	// HealthUnwatched evaluates nothing: applied add-ons are healthy.
	HealthUnwatched HealthMode = "None"
)

// HealthCheck says how the health of an add-on is evaluated. In every mode Jobs and Pods are watched until they end; if they are deleted
// afterwards, that is no drift.
//
// +kubebuilder:validation:XValidation:rule="!has(self.rules) || !has(self.mode) || self.mode in ['Workloads', 'Rules']",message="rules need mode Workloads or Rules"
// +kubebuilder:validation:XValidation:rule="!has(self.lease) || has(self.mode) && self.mode == 'Lease'",message="lease needs mode Lease"
// +kubebuilder:validation:XValidation:rule="!has(self.mode) || self.mode != 'Rules' || has(self.rules) && size(self.rules) > 0",message="mode Rules needs rules"
type HealthCheck struct {
	// mode is Workloads, Lease, Rules or None. Absent: Workloads.
	// +optional
	Mode HealthMode `json:"mode,omitempty"`
	// lease names the Lease, in mode Lease.
	// +optional
	Lease *HealthLease `json:"lease,omitempty"`
	// rules define when kinds, or single objects, are healthy.
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
	// staleAfter is how long the Lease may stay unchanged, from 30s to 1h, by the clock of the seed's manager. Absent: 5m.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(\.[0-9]{1,3})?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('30s') && duration(self) <= duration('1h')",message="staleAfter must be between 30s and 1h"
	StaleAfter *metav1.Duration `json:"staleAfter,omitempty"`
}

// HealthRule defines when objects are healthy, in CEL (the Common Expression Language, with optional fields). Expressions see the object
// as self; a field that does not exist yet counts as progress.
//
// +kubebuilder:validation:XValidation:rule="self.kind != 'Secret' || self.apiVersion != 'v1'",message="rules can't read Secrets"
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
	// name of the one object of the user cluster that the rule matches. Absent: the rule matches each object of the kind in the add-on.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[^/%]+$`
	Name string `json:"name,omitempty"`
	// namespace of the object in name; absent for cluster-scoped kinds.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespace string `json:"namespace,omitempty"`
	// healthy is true if the object works.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Healthy string `json:"healthy,omitempty"`
	// failed is true if the object will not become healthy by waiting.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Failed string `json:"failed,omitempty"`
	// message is a text about an unhealthy object. The expression can use status, and metadata without annotations.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}
