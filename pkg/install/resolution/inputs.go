package resolution

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/install/helmrelease"
	"github.com/trellis-addons/trellis/pkg/install/revision"
	"github.com/trellis-addons/trellis/pkg/values"
	"github.com/trellis-addons/trellis/pkg/values/templatedata"
)

// inputsFormat has to change when equal inputs may result in other objects than before.
const inputsFormat = "3"

// Inputs are all that objects depend on, except for the last revision (ADR 37) and random data.
type Inputs struct {
	Installation *v1.AddonInstallation
	Choice       Choice
	Content      string
	Values       Values
	// Images are the rules that rewrite images, in canonical form.
	Images []byte

	Data              templatedata.Data
	KubernetesVersion string
	// Served are the kinds of the cluster that the version's templates read.
	Served []string
}

// version identifies the content of the version by its digest. Its name is no input: no template sees it.
func (i Inputs) version() []byte { return []byte(i.Choice.Origin.Content) }

// Hash is over all inputs, keyed. With equal hashes, objects differ only in random data or results of lookup.
func (i Inputs) Hash(key []byte) (string, error) {
	merged, err := json.Marshal(i.Values.Merged)
	if err != nil {
		return "", fmt.Errorf("encoding the values: %w", err)
	}
	data, err := templatedata.Canonical(i.Data)
	if err != nil {
		return "", fmt.Errorf("encoding the template data: %w", err)
	}
	var granted [][]byte // the grant has to be recorded, even if the values are equal
	if i.Values.Granted != "" {
		granted = [][]byte{[]byte("platform values"), []byte(i.Values.Granted)}
	}
	return revision.InputsHash(key, slices.Concat([][]byte{
		[]byte(inputsFormat), i.version(), []byte(i.Content), merged, data,
		[]byte(i.KubernetesVersion), []byte(strings.Join(i.Served, "\n")),
	}, i.place(), granted)...), nil
}

// Wanted is a hash over all that users write: catalogue entry, content, values, and target. It covers neither the
// cluster's own data, nor the values that a valuesTemplate computes from it.
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

// ReleaseName is the name of an installation's Helm release; empty for other methods.
func (c Choice) ReleaseName(installation *v1.AddonInstallation) string {
	template := c.Version.Template
	switch {
	case !catalogue.TraitsOf(template.Method).HasRelease:
		return ""
	case installation.Spec.ReleaseName != "":
		return installation.Spec.ReleaseName
	case template.Helm != nil && template.Helm.ReleaseName != "":
		return template.Helm.ReleaseName
	}
	return helmrelease.NameFor(installation.Name)
}
