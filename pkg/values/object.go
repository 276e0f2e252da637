package values

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

const mostVersionSources = 8

// parts are the fields of an object that values may come from. Metadata has what programs write for each other.
var parts = []string{"spec", "status", "data"}

// CheckObject checks a reference to an object. The error names the field.
func CheckObject(ref *v1.ObjectReference) error {
	switch {
	case ref.APIGroup == "":
		return errors.New("objectRef.apiGroup is empty: objects of the core group, such as Secrets, are not read")
	case ref.Kind == "":
		return errors.New("objectRef.kind is empty")
	case ref.Name == "":
		return errors.New("objectRef.name is empty")
	}
	if _, err := parsePart(ref.Path); err != nil {
		return fmt.Errorf("objectRef.path: %w", err)
	}
	if ref.TargetPath == "" {
		return nil
	}
	if _, err := parseTarget(ref.TargetPath); err != nil {
		return fmt.Errorf("objectRef.targetPath: %w", err)
	}
	return nil
}

// CheckSources checks the sources of a version. Field is the path below the version.
func CheckSources(version *v1.AddonVersion) (field string, err error) {
	if len(version.ValuesFrom) > mostVersionSources {
		return "valuesFrom", fmt.Errorf("there are %d, at most %d are allowed", len(version.ValuesFrom), mostVersionSources)
	}
	for at, source := range version.ValuesFrom {
		err := errors.New("objectRef is missing")
		if source.ObjectRef != nil {
			err = CheckObject(source.ObjectRef)
		}
		if err != nil {
			return fmt.Sprintf("valuesFrom[%d]", at), err
		}
	}
	return "", nil
}

func parsePart(text string) (Path, error) {
	if text == "" {
		text = "spec"
	}
	path, err := ParsePath(text)
	switch {
	case err != nil:
		return nil, err
	case slices.ContainsFunc(path, func(step Step) bool { return step.IsIndex }):
		return nil, &PathError{text, "has an index: name the whole list"}
	case !slices.Contains(parts, path[0].Key):
		return nil, &PathError{text, "does not begin with spec, status or data"}
	}
	return path, nil
}

// ErrNoPart reports that an object lacks the part that a reference names.
var ErrNoPart = errors.New("has nothing there")

// Part returns the values of a part of an object: a map of values, or any value at targetPath. The error is ErrNoPart, or a
// *DecodeError without a value.
func Part(object map[string]any, ref *v1.ObjectReference) (map[string]any, error) {
	path, err := parsePart(ref.Path)
	if err != nil {
		return nil, &DecodeError{Problem: "path: " + err.Error()}
	}
	part, found, err := path.Get(object)
	if err != nil {
		return nil, &DecodeError{Problem: err.Error()}
	}
	if !found || part == nil {
		return nil, ErrNoPart
	}
	made := part
	if ref.TargetPath != "" {
		target, err := parseTarget(ref.TargetPath)
		if err != nil {
			return nil, &DecodeError{Problem: "targetPath: " + err.Error()}
		}
		under := map[string]any{}
		if err := target.Set(under, part); err != nil {
			return nil, err
		}
		made = under
	}
	return bounded(made)
}

// bounded copies values within the limits of a layer.
func bounded(content any) (map[string]any, error) {
	encoded, err := json.Marshal(content)
	if err != nil {
		return nil, &DecodeError{Problem: "is not valid"}
	}
	return Decode(encoded)
}
