package gotemplate

import (
	"fmt"
	"strings"
	"text/template"
	"time"

	"github.com/Masterminds/semver/v3"
	"github.com/Masterminds/sprig/v3"

	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/values/images"
)

// functions are sprig's without environment and network, and KKP's. The rendering process limits their use of
// resources.
func (r *rendering) functions() template.FuncMap {
	functions := sprig.TxtFuncMap()
	for _, outward := range []string{"env", "expandenv", "getHostByName"} {
		delete(functions, outward)
	}
	functions["join"] = join
	functions["semverCompare"] = semverCompare
	if _, isValues := r.root.(valuesData); isValues {
		functions["join"], functions["semverCompare"] = joinEither, semverCompareEither
	}
	functions["Image"] = func(reference string) (string, error) {
		return image(reference, r.data.OverwriteRegistry)
	}
	if r.otherMoment {
		functions["now"] = func() time.Time { return render.OtherTime }
	}
	return functions
}

// join has the argument order of strings.Join, as in KKP. It takes any values, KKP's only strings.
func join(list any, separator string) (string, error) {
	var parts []string
	switch list := list.(type) {
	case nil:
	case []string:
		parts = list
	case []any:
		for _, part := range list {
			parts = append(parts, fmt.Sprint(part))
		}
	default:
		return "", fmt.Errorf("join needs a list and a separator")
	}
	return strings.Join(parts, separator), nil
}

// joinEither is join for templates of values, which were often written for other tools: it also accepts the separator
// first, as in sprig.
func joinEither(first, second any) (string, error) {
	if separator, isText := first.(string); isText {
		return join(second, separator)
	}
	separator, isText := second.(string)
	if !isText {
		return "", fmt.Errorf("join needs a list and a separator")
	}
	return join(first, separator)
}

// semverCompareEither is semverCompare for templates of values: it also accepts the range first, as in sprig, if that
// is no version.
func semverCompareEither(first, second any) bool {
	if _, err := semver.NewVersion(fmt.Sprint(first)); err != nil {
		first, second = second, first
	}
	return semverCompare(first, second)
}

// semverCompare has the version first, as in KKP, and is false if either can't be parsed.
func semverCompare(version, constraint any) bool {
	parsed, err := semver.NewVersion(fmt.Sprint(version))
	if err != nil {
		return false
	}
	wanted, err := semver.NewConstraint(fmt.Sprint(constraint))
	return err == nil && wanted.Check(parsed)
}

// image writes a reference in full, with another registry if one is set.
func image(text, registry string) (string, error) {
	reference, ok := images.Parse(text)
	if !ok {
		return "", fmt.Errorf("an image reference that is not valid")
	}
	if registry != "" {
		reference.Domain = registry
	}
	return reference.String(), nil
}
