package values

import (
	"fmt"
	"slices"
	"unicode/utf8"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// CheckSource checks a source of values beyond its schema: paths, and what the schema does not check in lists.
func CheckSource(source *v1.ValuesSource) error {
	if source.ObjectRef != nil {
		return CheckObject(source.ObjectRef)
	}
	for _, named := range []struct {
		field     string
		reference *v1.KeyReference
	}{{"secretRef", source.SecretRef}, {"configMapRef", source.ConfigMapRef}} {
		if named.reference == nil || named.reference.TargetPath == "" {
			continue
		}
		if named.reference.Key == "" {
			return fmt.Errorf("%s.targetPath needs key: name the key whose text goes there", named.field)
		}
		if _, err := parseTarget(named.reference.TargetPath); err != nil {
			return fmt.Errorf("%s.targetPath: %w", named.field, err)
		}
	}
	return nil
}

// TextAt returns values with one text, at the path of a targetPath. The error is a *DecodeError, without the text.
func TextAt(target string, text []byte) (map[string]any, error) {
	path, err := parseTarget(target)
	switch {
	case err != nil:
		return nil, &DecodeError{Problem: "targetPath: " + err.Error()}
	case len(text) > MaxBytes:
		return nil, &DecodeError{Problem: fmt.Sprintf("has more than %d bytes, the limit of values", MaxBytes)}
	case !utf8.Valid(text):
		return nil, &DecodeError{Problem: "is not UTF-8 text: encode it, for example as base64"}
	}
	made := map[string]any{}
	return made, path.Set(made, string(text))
}

// parseTarget reads a targetPath. It leads through maps: a list would replace the whole list of lower layers.
func parseTarget(text string) (Path, error) {
	path, err := ParsePath(text)
	switch {
	case err != nil:
		return nil, err
	case slices.ContainsFunc(path, func(step Step) bool { return step.IsIndex }):
		return nil, &PathError{text, "has an index: lists are replaced as a whole, so give the list as YAML, without targetPath"}
	case path[0].Key == ReservedKey:
		return nil, &PathError{text, fmt.Sprintf("begins with %q, which is reserved for the cluster's data", ReservedKey)}
	}
	return path, nil
}
