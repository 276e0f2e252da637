package values

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

const templateMark = "{{"

const longestKey = 64

// MarksError says that values contain template marks.
type MarksError struct {
	// Path leads to the text, or to the map with the key.
	Path  string
	IsKey bool
}

func (e *MarksError) Error() string {
	what := "the text at " + strconv.Quote(e.Path)
	if e.IsKey {
		what = "a key below " + strconv.Quote(e.Path)
	}
	return what + ` contains template marks ("{{", or "{" at its end), which are not allowed in values of an installation that gets ` +
		"secrets of the cluster or of the platform; the author of the catalogue may put such text into the version's values"
}

// CheckMarks refuses values with a text or key that contains a template mark, or that could
// complete one with the following text. Encoded text, such as base64, isn't checked. The error is a
// *MarksError.
func CheckMarks(content map[string]any) error {
	if problem := findMarks(content, ""); problem != nil {
		return problem
	}
	return nil
}

// PlaceOf names the source of an installation's own values, which may be the custom core list.
func PlaceOf(installation *v1.AddonInstallation) string {
	if installation.Spec.CoreAddon && installation.Annotations[v1.AnnotationCoreOrigin] == v1.OriginList {
		return `spec.values (of this installation, or of its item in ConfigMap custom-core-addons of the platform namespace)`
	}
	return "spec.values"
}

func findMarks(content any, path string) *MarksError {
	switch content := content.(type) {
	case string:
		if isMarked(content) {
			return &MarksError{Path: path}
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(content)) {
			if isMarked(key) {
				return &MarksError{Path: path, IsKey: true}
			}
			if problem := findMarks(content[key], below(path, key)); problem != nil {
				return problem
			}
		}
	case []any:
		for i, one := range content {
			if problem := findMarks(one, fmt.Sprintf("%s[%d]", path, i)); problem != nil {
				return problem
			}
		}
	}
	return nil
}

func isMarked(text string) bool {
	return strings.Contains(text, templateMark) || strings.HasSuffix(strings.TrimSpace(text), templateMark[:1])
}

func below(path, key string) string {
	if len(key) > longestKey {
		key = key[:longestKey] + "…"
	}
	if path == "" {
		return key
	}
	return path + "." + key
}
