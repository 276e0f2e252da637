package resolution

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/helmrelease"
	"github.com/trellis-addons/trellis/pkg/revision"
	"github.com/trellis-addons/trellis/pkg/templatedata"
	"github.com/trellis-addons/trellis/pkg/values"
)

// inputsFormat changes whenever equal inputs could give other objects than before.
const inputsFormat = "3"

// Inputs are all that objects depend on, except for the last revision (ADR 37) and chance.
type Inputs struct {
	Installation *v1.AddonInstallation
	Choice       Choice
	Content      string
	Values       Values
	// Images are the rules by which images are rewritten, in canonical form.
	Images []byte

	Data              templatedata.Data
	KubernetesVersion string
	// Served are the kinds of the cluster that the version's templates ask for.
	Served []string
}

// version identifies what the version installs, by the digest of its content. Its name is no input: no template sees it.
func (i Inputs) version() []byte { return []byte(i.Choice.Origin.Content) }

// Hash is over all inputs, keyed. With equal hashes, objects differ by chance or lookup only.
func (i Inputs) Hash(key []byte) (string, error) {
	merged, err := json.Marshal(i.Values.Merged)
	if err != nil {
		return "", fmt.Errorf("encoding the values: %w", err)
	}
	data, err := templatedata.Canonical(i.Data)
	if err != nil {
		return "", fmt.Errorf("encoding the template data: %w", err)
	}
	var granted [][]byte // what is granted is to be on record, also where it comes to the same values
	if i.Values.Granted != "" {
		granted = [][]byte{[]byte("platform values"), []byte(i.Values.Granted)}
	}
	return revision.InputsHash(key, slices.Concat([][]byte{
		[]byte(inputsFormat), i.version(), []byte(i.Content), merged, data,
		[]byte(i.KubernetesVersion), []byte(strings.Join(i.Served, "\n")),
	}, i.place(), granted)...), nil
}

// Wanted is a hash over what people write: catalogue entry, content, values, and target. The
// cluster's own data does not count, nor the values that a valuesTemplate makes of it.
func (i Inputs) Wanted(key []byte) (string, error) {
	given, err := json.Marshal(slices.DeleteFunc(slices.Clone(i.Values.Layers), func(layer values.Layer) bool {
		return layer.Origin == originTemplate || layer.Origin == originOwnTemplate
	}))
	if err != nil {
		return "", fmt.Errorf("encoding the layers of values: %w", err)
	}
	fields := slices.Concat([][]byte{[]byte("wanted"), i.version(), []byte(i.Content), given}, i.place())
	if template := i.Installation.Spec.ValuesTemplate; template != "" {
		fields = append(fields, []byte(template))
	}
	return revision.InputsHash(key, fields...), nil
}

func (i Inputs) place() [][]byte {
	spec := i.Installation.Spec
	return [][]byte{
		[]byte(spec.TargetNamespace), fmt.Append(nil, spec.CreateNamespace),
		[]byte(i.Choice.ReleaseName(i.Installation)), i.Images,
	}
}

// ReleaseName is that of an installation's Helm release; empty for other methods.
func (c Choice) ReleaseName(installation *v1.AddonInstallation) string {
	template := c.Version.Template
	switch {
	case template.Method != v1.MethodHelm:
		return ""
	case installation.Spec.ReleaseName != "":
		return installation.Spec.ReleaseName
	case template.Helm != nil && template.Helm.ReleaseName != "":
		return template.Helm.ReleaseName
	}
	return helmrelease.NameFor(installation.Name)
}
