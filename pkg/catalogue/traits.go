package catalogue

import v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"

// Traits are the properties of a rendering method. A new method is a row of the table, and a renderer in cmd/wiring.
type Traits struct {
	// HasRelease: each installation is a Helm release, which its templates see.
	HasRelease bool
	// IsChart: the content is a chart, with values, metadata and hooks of its own. Otherwise it is manifests.
	IsChart bool
	// SeesServed: templates may see which kinds the user cluster serves.
	SeesServed bool
	// LooksUp: templates may look objects up in the user cluster.
	LooksUp bool
	// KeepsCRDs: CustomResourceDefinitions stay when the add-on is removed, unless its version has another setting.
	KeepsCRDs bool
	// LooksFirst: nothing is written if an object of another owner conflicts.
	LooksFirst bool
}

var traits = map[v1.Method]Traits{
	v1.MethodGoTemplate: {},
	v1.MethodHelm:       {HasRelease: true, IsChart: true, SeesServed: true, LooksUp: true, KeepsCRDs: true, LooksFirst: true},
}

// TraitsOf are the traits of a method.
func TraitsOf(method v1.Method) Traits { return traits[method] }
