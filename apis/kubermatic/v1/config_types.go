package v1

// ObjectReference names a part of an object in the same namespace, of a kind that the seed's --provider-kinds allows.
type ObjectReference struct {
	// apiGroup of the kind.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	APIGroup string `json:"apiGroup,omitempty"`
	// kind of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind,omitempty"`
	// name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
	// path of the part, dotted, such as spec.proxy; "\." is a dot in a key. It begins with spec, status or data. Absent: spec. Of an
	// AddOnDeploymentConfig of Open Cluster Management without a path, Trellis makes values with the names of Open Cluster Management.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^(spec|status|data)(\..+)?$`
	Path string `json:"path,omitempty"`
	// targetPath is the dotted path of values where the part is put. Absent: the part is a map of values.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	TargetPath string `json:"targetPath,omitempty"`
	// optional objects, and parts of them, may be missing.
	// +optional
	Optional bool `json:"optional,omitempty"`
}

// ConfigOrigin says who names an object with values.
//
// +kubebuilder:validation:Enum=Catalogue;Installation
type ConfigOrigin string

const (
	// ConfigOfCatalogue: the version in the catalogue names it.
	ConfigOfCatalogue ConfigOrigin = "Catalogue"
	// ConfigOfInstallation: the installation names it.
	ConfigOfInstallation ConfigOrigin = "Installation"
)

// ConfigStatus is the state of an object with values.
//
// +kubebuilder:validation:Enum=Applied;Pending;Missing;Refused
type ConfigStatus string

const (
	// ConfigApplied: its present values are in the user cluster.
	ConfigApplied ConfigStatus = "Applied"
	// ConfigPending: they are not, or not completely.
	ConfigPending ConfigStatus = "Pending"
	// ConfigMissing: the object, or the part of it, does not exist.
	ConfigMissing ConfigStatus = "Missing"
	// ConfigRefused: its values can't be used. Condition ValuesResolved says why.
	ConfigRefused ConfigStatus = "Refused"
)

// ConfigState is an object that objectRef names, with its state.
type ConfigState struct {
	// apiGroup of the kind.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	APIGroup string `json:"apiGroup,omitempty"`
	// kind of the object.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind,omitempty"`
	// name of the object.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
	// origin is Catalogue or Installation.
	// +optional
	Origin ConfigOrigin `json:"origin,omitempty"`
	// state is Applied, Pending, Missing or Refused.
	// +optional
	State ConfigStatus `json:"state,omitempty"`
	// digest of the object's present values, with a key of the seed.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Digest string `json:"digest,omitempty"`
	// appliedDigest is the digest of the values that were applied last.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	AppliedDigest string `json:"appliedDigest,omitempty"`
}
