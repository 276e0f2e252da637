package addonset

import (
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/values"
)

// Limits of sets that the CRD can't enforce.
const (
	// MaxSets is the maximal number of sets of a platform.
	MaxSets = 100
	// MaxBytes is the maximal size of a spec in JSON.
	MaxBytes = 512 << 10
	// maxTerms is the maximal number of matchLabels, and of matchExpressions, of one selector.
	maxTerms = 32
	// maxChoices is the maximal number of values of one matchExpression.
	maxChoices = 256
)

// PlaceholderCluster is the placeholder for the Cluster's name in names of valuesFrom.
const PlaceholderCluster = "$(cluster)"

// Validate refuses a set that can't be carried out in any cluster, with the first problem in the order of the fields.
// Errors: *FieldError, *CycleError, *TooLargeError.
func Validate(set *v1.AddonSet) error {
	spec := &set.Spec
	for _, check := range []func(*v1.AddonSetSpec) error{
		checkSize, checkClusters, checkItems, checkDependencies, checkOverrides, checkGroups,
	} {
		if err := check(spec); err != nil {
			return err
		}
	}
	return nil
}

func checkSize(spec *v1.AddonSetSpec) error {
	encoded, err := json.Marshal(spec)
	if err != nil {
		return &FieldError{Place: "spec", Problem: "it can't be written as JSON"}
	}
	if len(encoded) > MaxBytes {
		return &TooLargeError{Have: len(encoded), Max: MaxBytes}
	}
	return nil
}

func checkClusters(spec *v1.AddonSetSpec) error {
	if err := checkSelector("spec.clusterSelector", spec.ClusterSelector); err != nil {
		return err
	}
	if spec.Constraints == nil {
		return nil
	}
	if err := checkRange("spec.constraints.k8sVersion", string(spec.Constraints.K8sVersion)); err != nil {
		return err
	}
	return checkRange("spec.constraints.kkpVersion", string(spec.Constraints.KKPVersion))
}

const longestProblem = 200

func checkSelector(place string, selector *metav1.LabelSelector) error {
	if selector == nil {
		return &FieldError{place, "it is missing: write {} to select all clusters"}
	}
	if len(selector.MatchLabels) > maxTerms || len(selector.MatchExpressions) > maxTerms {
		return &FieldError{place, fmt.Sprintf("it has more than %d matchLabels or matchExpressions", maxTerms)}
	}
	for i, one := range selector.MatchExpressions {
		if len(one.Values) > maxChoices {
			return &FieldError{
				fmt.Sprintf("%s.matchExpressions[%d].values", place, i),
				fmt.Sprintf("there are %d, at most %d are allowed", len(one.Values), maxChoices),
			}
		}
	}
	if _, err := metav1.LabelSelectorAsSelector(selector); err != nil {
		return &FieldError{place, text.Cut(err.Error(), longestProblem)}
	}
	return nil
}

func checkRange(place, wanted string) error {
	if wanted == "" {
		return nil
	}
	if _, err := catalogue.ParseRange(wanted); err != nil {
		return &FieldError{place, err.Error()}
	}
	return nil
}

func checkItems(spec *v1.AddonSetSpec) error {
	seen := map[v1.AddonName]bool{}
	for i := range spec.Addons {
		item := &spec.Addons[i]
		place := fmt.Sprintf("spec.addons[%d] (%q)", i, item.Name)
		if seen[item.Name] {
			return &FieldError{place + ".name", "another item has the same name: names are unique in a set"}
		}
		seen[item.Name] = true
		if err := checkItem(place, item); err != nil {
			return err
		}
	}
	return nil
}

func checkItem(place string, item *v1.AddonSetItem) error {
	if wanted := item.AddonRef.Version; catalogue.IsRange(wanted) {
		if err := checkRange(place+".addonRef.version", wanted); err != nil {
			return err
		}
	}
	if err := checkValues(place+".values", item.Values); err != nil {
		return err
	}
	for i := range item.ValuesFrom {
		if err := checkSource(fmt.Sprintf("%s.valuesFrom[%d]", place, i), &item.ValuesFrom[i]); err != nil {
			return err
		}
	}
	if field, err := values.CheckTemplate(&v1.AddonVersion{ValuesTemplate: item.ValuesTemplate}); err != nil {
		return &FieldError{place + "." + field, err.Error()}
	}
	if item.PlatformSecretRef != nil {
		return checkName(place+".platformSecretRef.name", item.PlatformSecretRef.Name)
	}
	return nil
}

func checkValues(place string, raw *runtime.RawExtension) error {
	if raw == nil {
		return nil
	}
	given, err := values.Decode(raw.Raw)
	if err != nil {
		return &FieldError{place, err.Error()}
	}
	if _, _, err := values.Merge([]values.Layer{{Origin: "the set", Values: given}}); err != nil {
		return &FieldError{place, err.Error()}
	}
	return nil
}

func checkSource(place string, source *v1.ValuesSource) error {
	if err := values.CheckSource(source); err != nil {
		return &FieldError{place, err.Error()}
	}
	switch {
	case source.SecretRef != nil:
		return checkName(place+".secretRef.name", source.SecretRef.Name)
	case source.ConfigMapRef != nil:
		return checkName(place+".configMapRef.name", source.ConfigMapRef.Name)
	case source.ProviderRef != nil:
		return checkName(place+".providerRef.name", source.ProviderRef.Name)
	case source.ObjectRef != nil:
		return checkName(place+".objectRef.name", source.ObjectRef.Name)
	}
	return nil
}

// checkName refuses a name that no object can have, with any name of the Cluster.
func checkName(place, name string) error {
	problems := validation.IsDNS1123Subdomain(strings.ReplaceAll(name, PlaceholderCluster, "x"))
	if len(problems) == 0 {
		return nil
	}
	return &FieldError{place, "it is not a valid object name, even with " + PlaceholderCluster + " replaced: " + problems[0]}
}

func checkOverrides(spec *v1.AddonSetSpec) error {
	items := itemNames(spec)
	for i, override := range spec.Overrides {
		place := fmt.Sprintf("spec.overrides[%d]", i)
		if !items[override.Addon] {
			return &FieldError{place + ".addon", fmt.Sprintf("the set has no item %q: give the name of one in spec.addons", override.Addon)}
		}
		if err := checkSelector(place+".clusterSelector", override.ClusterSelector); err != nil {
			return err
		}
		if err := checkValues(place+".values", override.Values); err != nil {
			return err
		}
	}
	return nil
}

func itemNames(spec *v1.AddonSetSpec) map[v1.AddonName]bool {
	names := make(map[v1.AddonName]bool, len(spec.Addons))
	for i := range spec.Addons {
		names[spec.Addons[i].Name] = true
	}
	return names
}

func checkGroups(spec *v1.AddonSetSpec) error {
	if spec.Rollout == nil {
		return nil
	}
	for i, group := range spec.Rollout.Groups {
		place := fmt.Sprintf("spec.rollout.groups[%d] (%q).clusterSelector", i, group.Name)
		if err := checkSelector(place, group.ClusterSelector); err != nil {
			return err
		}
	}
	return nil
}
