package v1

// CoreAddons are the core add-ons of a cluster.
type CoreAddons struct {
	CoreAddonCounts `json:",inline"`
	// addons lists them by name, at most 200.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=200
	Addons []CoreAddonState `json:"addons,omitempty"`
}

// CoreAddonPhase is the state of a core add-on in a cluster.
//
// +kubebuilder:validation:Enum=Ready;Progressing;Failing;Missing;NameTaken
type CoreAddonPhase string

const (
	// CoreAddonReady is Ready.
	CoreAddonReady CoreAddonPhase = "Ready"
	// CoreAddonProgressing is not Ready yet, or has no installation yet.
	CoreAddonProgressing CoreAddonPhase = "Progressing"
	// CoreAddonFailing has Ready False.
	CoreAddonFailing CoreAddonPhase = "Failing"
	// CoreAddonMissing is in no catalogue.
	CoreAddonMissing CoreAddonPhase = "Missing"
	// CoreAddonNameTaken has no installation, since another one has its name.
	CoreAddonNameTaken CoreAddonPhase = "NameTaken"
)

// CoreAddonState is the state of one core add-on.
type CoreAddonState struct {
	// name of its installation.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`
	// addon is the name of the add-on.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Addon string `json:"addon,omitempty"`
	// version in the user cluster; absent until a version is applied.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Version string `json:"version,omitempty"`
	// state is Ready, Progressing, Failing, Missing or NameTaken.
	// +required
	State CoreAddonPhase `json:"state,omitempty"`
	// reason of condition Ready of the installation.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Reason string `json:"reason,omitempty"`
}

// CoreAddonCounts counts the core add-ons of a cluster.
type CoreAddonCounts struct {
	// total is the number of core add-ons.
	// +optional
	Total int32 `json:"total,omitempty"`
	// ready is the number of core add-ons that are Ready.
	// +optional
	Ready int32 `json:"ready,omitempty"`
	// failing is the number of core add-ons whose Ready is False.
	// +optional
	Failing int32 `json:"failing,omitempty"`
	// missing is the number of core add-ons that are in no catalogue.
	// +optional
	Missing int32 `json:"missing,omitempty"`
}
