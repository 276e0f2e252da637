package webhook

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/values"
)

var credentialWords = []string{"password", "passwd", "token", "secretkey", "accesskey", "apikey", "privatekey", "credentials"}

const credentialsWarned = 3

// credentialWarnings names keys whose plain text looks like a credential, which all readers of
// installations would see.
func credentialWarnings(given map[string]any) []string {
	var suspects []string
	suspect(given, nil, &suspects)
	var warnings []string
	for _, path := range suspects[:min(len(suspects), credentialsWarned)] {
		warnings = append(warnings, fmt.Sprintf(
			"spec.values: %s looks like a credential: keep it in a Secret with label %s=%s and name that in spec.valuesFrom",
			path, v1.LabelUse, v1.UseValues))
	}
	return warnings
}

func suspect(given map[string]any, at values.Path, found *[]string) {
	for _, key := range slices.Sorted(maps.Keys(given)) {
		here := append(slices.Clip(at), values.Step{Key: key})
		switch value := given[key].(type) {
		case map[string]any:
			suspect(value, here, found)
		case string:
			if value != "" && isCredential(key) {
				*found = append(*found, here.String())
			}
		}
	}
}

func isCredential(key string) bool {
	plain := strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(key))
	return slices.ContainsFunc(credentialWords, func(word string) bool { return strings.HasSuffix(plain, word) })
}
