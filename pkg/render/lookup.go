package render

import (
	"encoding/base64"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	// MaxFoundBytes of all objects that function lookup finds, as JSON.
	MaxFoundBytes = 20 << 20
	// MaxFoundObject of one of them.
	MaxFoundObject = 2 << 20
	// shortestSecret is the length from which on a text of a Secret counts; shorter ones occur in any text.
	shortestSecret = 4
)

// OtherTime is what a clock says in a rendering as at another moment. No part of it is today's.
var OtherTime = time.Date(1999, time.August, 7, 16, 5, 4, 0, time.UTC)

// SecretTexts are the texts of the Secrets among objects, as they stand there and decoded, each once.
func SecretTexts(objects []*unstructured.Unstructured) []string {
	var found []string
	for _, object := range objects {
		if object.GetKind() != "Secret" {
			continue
		}
		for _, field := range []string{"data", "stringData"} {
			content, _, _ := unstructured.NestedMap(object.Object, field)
			for _, value := range content {
				text, _ := value.(string)
				found = append(found, text)
				if decoded, err := base64.StdEncoding.DecodeString(text); err == nil {
					found = append(found, string(decoded))
				}
			}
		}
	}
	found = slices.DeleteFunc(found, func(text string) bool { return len(strings.TrimSpace(text)) < shortestSecret })
	slices.Sort(found)
	return slices.Compact(found)
}
