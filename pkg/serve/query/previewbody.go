package query

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/charts"
	"github.com/trellis-addons/trellis/pkg/serve/crds"
)

// specSchemas are the schemas of spec in our CRDs, by resource. Their rules in CEL are not checked: those about changes of an installation
// are (checkChange), and others are checked again by the controller.
var specSchemas = map[string]func() (*jsonschema.Schema, error){
	ResourceInstallations: sync.OnceValues(func() (*jsonschema.Schema, error) { return specSchema(ResourceInstallations) }),
	resourceSets:          sync.OnceValues(func() (*jsonschema.Schema, error) { return specSchema(resourceSets) }),
}

func specSchema(resource string) (*jsonschema.Schema, error) {
	folder, err := charts.CRDs("trellis-seed")
	if err != nil {
		return nil, err
	}
	definitions, err := crds.Read(folder)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(definitions, func(one *unstructured.Unstructured) bool {
		return strings.HasPrefix(one.GetName(), resource+".")
	})
	if at < 0 {
		return nil, errNoDefinition
	}
	versions, _, err := unstructured.NestedSlice(definitions[at].Object, "spec", "versions")
	if err != nil || len(versions) != 1 {
		return nil, errors.Join(errNoDefinition, err)
	}
	schema, isThere, err := unstructured.NestedMap(versions[0].(map[string]any), "schema", "openAPIV3Schema", "properties", "spec")
	if err != nil || !isThere {
		return nil, errors.Join(errNoDefinition, err)
	}
	encoded, err := json.Marshal(schema)
	if err != nil {
		return nil, err
	}
	decoded, err := jsonschema.UnmarshalJSON(bytes.NewReader(encoded))
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("spec.json", decoded); err != nil {
		return nil, err
	}
	return compiler.Compile("spec.json")
}

var errNoDefinition = errors.New("the chart has no CRD of the resource with one version")

// installationOf reads an AddonInstallation with known fields only. Its namespace is the path's, and its name is that of the add-on if it
// has none. Status and most of the metadata count for nothing. Errors: *ParameterError, *TooLargeError, *MediaTypeError.
func installationOf(request *http.Request, namespace string) (*v1.AddonInstallation, error) {
	given := &v1.AddonInstallation{}
	if err := body(request, given); err != nil {
		return nil, err
	}
	kind := given.GroupVersionKind()
	switch {
	case kind.Kind != "" && kind.Kind != "AddonInstallation", kind.Group != "" && kind.GroupVersion() != v1.GroupVersion:
		return nil, &ParameterError{"body", "it is not an AddonInstallation of " + v1.GroupVersion.String()}
	case given.Namespace != "" && given.Namespace != namespace:
		return nil, &ParameterError{"body", "metadata.namespace is not the namespace of the path"}
	}
	made := &v1.AddonInstallation{Spec: given.Spec}
	made.Namespace, made.Annotations = namespace, given.Annotations
	made.Name = cmp.Or(given.Name, string(given.Spec.AddonRef.Name))
	if len(made.Name) > 63 || !clusterText.MatchString(made.Name) {
		return nil, &ParameterError{"body", fmt.Sprintf("metadata.name: %q is not a valid name of an AddonInstallation", shown(made.Name))}
	}
	made.Spec.ReconcileStrategy = cmp.Or(made.Spec.ReconcileStrategy, v1.ReconcileContinuous)
	made.Spec.DeletionPolicy = cmp.Or(made.Spec.DeletionPolicy, v1.DeletionDelete)
	return made, checkSpec(ResourceInstallations, &made.Spec)
}

// checkSpec checks a spec by the schema of its CRD. Errors: *ParameterError, which names the first field that is wrong.
func checkSpec(resource string, spec any) error {
	schema, err := specSchemas[resource]()
	if err != nil {
		return fmt.Errorf("reading the schema of %s: %w", resource, err)
	}
	encoded, err := json.Marshal(spec)
	if err != nil {
		return &ParameterError{"body", "its values are not JSON"}
	}
	decoded, err := jsonschema.UnmarshalJSON(bytes.NewReader(encoded))
	if err != nil {
		return fmt.Errorf("decoding a spec: %w", err)
	}
	wrong, isWrong := errors.AsType[*jsonschema.ValidationError](schema.Validate(decoded))
	if !isWrong {
		return nil
	}
	for len(wrong.Causes) > 0 {
		wrong = wrong.Causes[0]
	}
	field := strings.Join(append([]string{"spec"}, wrong.InstanceLocation...), ".")
	return &ParameterError{"body", shown(field) + ": it is not what the kind allows: see kubectl explain " + resource + ".spec"}
}
