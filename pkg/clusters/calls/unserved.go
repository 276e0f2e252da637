package calls

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/values"
)

// Unserved says which version or kind the user cluster does not serve, and what to do.
func Unserved(served Served, wanted schema.GroupVersionKind) string {
	version := wanted.GroupVersion().String()
	var all []string
	if served != nil {
		all = served.APIVersions()
	}
	isVersion := slices.Contains(all, version)
	var similar string
	var others []string
	for _, one := range all {
		at := strings.LastIndexByte(one, '/')
		in, kind := one[:max(at, 0)], one[at+1:]
		isVersion = isVersion || in == version
		parsed, err := schema.ParseGroupVersion(in)
		switch {
		case in == version && similar == "" && values.IsSlip(kind, wanted.Kind):
			similar = kind
		case in != "" && kind == wanted.Kind && err == nil && parsed.Group == wanted.Group && !slices.Contains(others, in):
			others = append(others, in)
		}
	}
	switch {
	case len(others) > 0:
		return fmt.Sprintf("the user cluster serves %s in %s, and not in %s: change its apiVersion",
			wanted.Kind, text.Names(others, maxVersions), version)
	case similar != "":
		return fmt.Sprintf("the user cluster serves no kind %q in %s: did you mean %q?", wanted.Kind, version, similar)
	case isVersion:
		return fmt.Sprintf("the user cluster serves no kind %q in %s: correct the kind, or install its CRD or API server", wanted.Kind, version)
	}
	return fmt.Sprintf("the user cluster does not serve %s: install the CRD or API server of the kind; the object is applied then", version)
}

// maxVersions is how many versions a message names.
const maxVersions = 3
