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
const inputsFormat = "2"

// Inputs are all that the objects of an installation depend on, but for what a rendering sees of
// the revision before (ADR 37).
type Inputs struct {
	Installation *v1.AddonInstallation
	Choice       Choice
	// Content is the digest of the version's content.
	Content string
	Values  Values
	// Images are the rules by which images are rewritten, in canonical form.
	Images []byte

	// Data is what templates see of the cluster.
	Data              templatedata.Data
	KubernetesVersion string
	// Served are the kinds of the cluster that the version's templates ask for.
	Served []string
}

// Hash is over all inputs, keyed. Objects of equal hashes differ by chance only, or by what a
// rendering sees of the revision before.
func (i Inputs) Hash(key []byte) (string, error) {
	merged, err := json.Marshal(i.Values.Merged)
	if err != nil {
		return "", fmt.Errorf("encoding the values: %w", err)
	}
	data, err := templatedata.Canonical(i.Data)
	if err != nil {
		return "", fmt.Errorf("encoding the template data: %w", err)
	}
	return revision.InputsHash(key, slices.Concat([][]byte{
		[]byte(inputsFormat), []byte(i.Choice.Origin.Digest), []byte(i.Content), merged, data,
		[]byte(i.KubernetesVersion), []byte(strings.Join(i.Served, "\n")),
	}, i.place())...), nil
}

// Wanted is a hash over what people say of them: catalogue entry, content, values, and where to.
// What the cluster is besides does not count, nor do the values that a valuesTemplate makes of it.
func (i Inputs) Wanted(key []byte) (string, error) {
	given, err := json.Marshal(slices.DeleteFunc(slices.Clone(i.Values.Layers), func(layer values.Layer) bool {
		return layer.Origin == originTemplate
	}))
	if err != nil {
		return "", fmt.Errorf("encoding the layers of values: %w", err)
	}
	return revision.InputsHash(key, slices.Concat([][]byte{
		[]byte("wanted"), []byte(i.Choice.Origin.Digest), []byte(i.Content), given,
	}, i.place())...), nil
}

// place is where the objects go, and the images that they get there.
func (i Inputs) place() [][]byte {
	spec := i.Installation.Spec
	return [][]byte{
		[]byte(spec.TargetNamespace), fmt.Append(nil, spec.CreateNamespace),
		[]byte(i.Choice.ReleaseName(i.Installation.Name)), i.Images,
	}
}

// ReleaseName of the Helm release that an installation of that name has; empty for other methods.
func (c Choice) ReleaseName(installation string) string {
	template := c.Version.Template
	switch {
	case template.Method != v1.MethodHelm:
		return ""
	case template.Helm != nil && template.Helm.ReleaseName != "":
		return template.Helm.ReleaseName
	}
	return helmrelease.NameFor(installation)
}
