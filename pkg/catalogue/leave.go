package catalogue

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// Limits of annotation leave-versions: versions and bytes.
const (
	leaveLimit       = 64
	leaveLengthLimit = 8192
)

// LeaveError reports that annotation leave-versions can't be parsed. All of it is ignored then.
type LeaveError struct{ Detail string }

func (e *LeaveError) Error() string {
	return fmt.Sprintf("annotation %s: %s: write it as addon=version, several separated by commas", v1.AnnotationLeaveVersions, e.Detail)
}

// Leave has the versions of core add-ons that clusters have to leave, by add-on.
type Leave map[string][]string

// ReadLeave reads annotation leave-versions: "rbac=99.0.0,canal=3.28.0". Errors: *LeaveError.
func ReadLeave(text string) (Leave, error) {
	if len(text) > leaveLengthLimit {
		return nil, &LeaveError{fmt.Sprintf("it has %d characters, at most %d are allowed", len(text), leaveLengthLimit)}
	}
	found := Leave{}
	items := strings.Split(text, ",")
	if len(items) > leaveLimit {
		return nil, &LeaveError{fmt.Sprintf("it names %d versions, at most %d are allowed", len(items), leaveLimit)}
	}
	for _, item := range items {
		addon, version, ok := strings.Cut(strings.TrimSpace(item), "=")
		if !ok || addon == "" || version == "" || strings.ContainsAny(item, "\"\\\n") {
			return nil, &LeaveError{fmt.Sprintf("%q names no version of an add-on", item)}
		}
		found[addon] = append(found[addon], version)
	}
	return found, nil
}

// Add adds the versions of another catalogue.
func (l Leave) Add(other Leave) {
	for addon, versions := range other {
		l[addon] = append(l[addon], versions...)
	}
}

// Of is annotation left-versions of an add-on's merged object: a sorted JSON list, or empty.
func (l Leave) Of(addon string) string {
	if len(l[addon]) == 0 {
		return ""
	}
	encoded, err := json.Marshal(slices.Compact(slices.Sorted(slices.Values(l[addon]))))
	if err != nil { // a list of texts always encodes
		return ""
	}
	return string(encoded)
}

func (l Leave) String() string {
	var all []string
	for _, addon := range slices.Sorted(maps.Keys(l)) {
		for _, version := range slices.Sorted(slices.Values(l[addon])) {
			all = append(all, addon+" "+version)
		}
	}
	return strings.Join(slices.Compact(all), ", ")
}

// readLeft reads the keys of the versions to leave from a merged object. Custom ones are ignored.
func readLeft(merged *v1.AddonCatalogue) (map[string]bool, error) {
	text := merged.Annotations[v1.AnnotationLeftVersions]
	if text == "" || merged.Spec.Type != v1.CatalogueCore {
		return nil, nil
	}
	var versions []string
	if err := json.Unmarshal([]byte(text), &versions); err != nil {
		return nil, &MalformedError{merged.Name, "annotation " + v1.AnnotationLeftVersions + " is not a JSON list of versions"}
	}
	left := make(map[string]bool, len(versions))
	for _, version := range versions {
		left[Key(version)] = true
	}
	return left, nil
}
