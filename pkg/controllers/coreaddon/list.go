package coreaddon

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/values"
	"github.com/trellis-addons/trellis/pkg/values/strictlist"
)

// ListName and ListKey locate the custom core list in the platform namespace.
const (
	ListName = "custom-core-addons"
	ListKey  = "addons.yaml"
)

const (
	maxItems = 128
	// maxListDepth is the 32 levels of values, plus those of the list and its items.
	maxListDepth = 40
	maxListBytes = 1 << 20
)

// exactVersion matches an addonRef.version that is no range, as in the schema of AddonInstallation.
var exactVersion = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._+-]{0,254}[A-Za-z0-9])?$`)

// item is one core add-on of the custom list.
type item struct {
	name     string
	spec     v1.AddonInstallationSpec
	selector labels.Selector
}

// listItem is an item as written: AddonInstallation.spec, with a name and a selector.
type listItem struct {
	Name            string                `json:"name"`
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`
	v1.AddonInstallationSpec
}

// ListError is a problem of the custom core list, with its position.
type ListError = strictlist.Error

var customList = strictlist.List{
	ConfigMap: ListName, Key: ListKey, Of: "core add-ons", Items: maxItems, Bytes: maxListBytes, Depth: maxListDepth,
}

// readList reads the whole list, or nothing. Errors: *ListError.
func readList(text string) ([]item, error) {
	seen := map[string]bool{}
	return strictlist.Read(customList, text, func(written any) (item, string, error) {
		read, err := readItem(written)
		if err == nil && seen[read.name] {
			err = fmt.Errorf("name %q is used twice", read.name)
		}
		seen[read.name] = true
		return read, read.name, err
	})
}

func readItem(written any) (item, error) {
	encoded, err := json.Marshal(written)
	if err != nil {
		return item{}, err
	}
	var read listItem
	decoder := json.NewDecoder(bytes.NewReader(encoded))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&read); err != nil {
		return item{name: read.Name}, fmt.Errorf("%s", strings.TrimPrefix(err.Error(), "json: "))
	}
	result := item{name: read.Name, spec: read.AddonInstallationSpec, selector: labels.Everything()}
	if read.ClusterSelector != nil {
		if result.selector, err = metav1.LabelSelectorAsSelector(read.ClusterSelector); err != nil {
			return result, fmt.Errorf("clusterSelector: %w", err)
		}
	}
	if err := checkItem(&result); err != nil {
		return result, err
	}
	fillIn(&result.spec)
	return result, nil
}

// checkItem refuses items that the API server would refuse later, once per cluster.
func checkItem(read *item) error {
	spec := &read.spec
	for _, field := range [][2]string{
		{"name", read.name}, {"addonRef.name", string(spec.AddonRef.Name)}, {"targetNamespace", spec.TargetNamespace},
	} {
		if field[1] == "" && field[0] == "targetNamespace" { // the catalogue's namespace applies
			continue
		}
		if field[1] == "" {
			return fmt.Errorf("%s: it is missing: set it", field[0])
		}
		if problems := validation.IsDNS1123Label(field[1]); len(problems) > 0 {
			return fmt.Errorf("%s: %s", field[0], problems[0])
		}
	}
	if isRuled(string(spec.AddonRef.Name)) && read.name != string(spec.AddonRef.Name) {
		return fmt.Errorf("a built-in rule has add-on %q: give its item the name of the add-on", spec.AddonRef.Name)
	}
	if err := checkVersion(spec.AddonRef.Version); err != nil {
		return fmt.Errorf("addonRef.version: %w", err)
	}
	if spec.Values != nil {
		if _, err := values.Decode(spec.Values.Raw); err != nil {
			return fmt.Errorf("values: %w", err)
		}
	}
	return checkOptions(spec)
}

func checkVersion(version string) error {
	if version == "" {
		return nil
	}
	if catalogue.IsRange(version) {
		_, err := catalogue.ParseRange(version)
		return err
	}
	if !exactVersion.MatchString(version) {
		return fmt.Errorf("it is neither a version nor a range")
	}
	return nil
}

func checkOptions(spec *v1.AddonInstallationSpec) error {
	if spec.ClusterName != "" {
		return fmt.Errorf("clusterName: it can't be set in the list: select the clusters of an item with clusterSelector")
	}
	switch spec.ReconcileStrategy {
	case "", v1.ReconcileContinuous, v1.ReconcileOnce:
	default:
		return fmt.Errorf("reconcileStrategy: use Continuous or Once")
	}
	switch spec.DeletionPolicy {
	case "", v1.DeletionDelete, v1.DeletionOrphan:
	default:
		return fmt.Errorf("deletionPolicy: use Delete or Orphan")
	}
	for i, source := range spec.ValuesFrom {
		set := 0
		for _, isSet := range []bool{source.SecretRef != nil, source.ConfigMapRef != nil, source.ProviderRef != nil, source.ObjectRef != nil} {
			if isSet {
				set++
			}
		}
		if set != 1 {
			return fmt.Errorf("valuesFrom[%d]: set exactly one of secretRef, configMapRef, providerRef and objectRef", i)
		}
		if err := values.CheckSource(&source); err != nil {
			return fmt.Errorf("valuesFrom[%d]: %w", i, err)
		}
	}
	return nil
}

// fillIn sets the schema's defaults, so that specs can be compared.
func fillIn(spec *v1.AddonInstallationSpec) {
	spec.CoreAddon = true
	spec.ReconcileStrategy = cmp.Or(spec.ReconcileStrategy, v1.ReconcileContinuous)
	spec.DeletionPolicy = cmp.Or(spec.DeletionPolicy, v1.DeletionDelete)
}

// listState is the state of the custom core list.
type listState = strictlist.State[item]

// lists keeps the last valid list, and reads each version of the ConfigMap once.
type lists struct{ kept strictlist.Kept[item] }

// update reads the present ConfigMap, nil if there is none. Result changed: it has another version.
func (l *lists) update(found *corev1.ConfigMap) (state listState, changed bool) {
	return l.kept.Update(found, readFound)
}

// with returns the state that update would return, and stores nothing.
func (l *lists) with(found *corev1.ConfigMap) listState { return l.kept.With(found, readFound) }

// stateName is the state of the list, as a label of the metric.
func (l *lists) stateName() string {
	switch state := l.kept.State(); {
	case state.Problem != nil:
		return listRefused
	case state.Absent && state.Read:
		return listGone
	case state.Read:
		return listGood
	}
	return listNone
}

func readFound(found *corev1.ConfigMap) ([]item, error) {
	text, err := customList.Text(found)
	if err != nil {
		return nil, err
	}
	return readList(text)
}
