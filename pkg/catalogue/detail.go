package catalogue

import (
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// VersionDetail is what a user interface shows of one version before it is installed. Neither source nor values are in it.
type VersionDetail struct {
	Addon            string           `json:"addon"`
	DisplayName      string           `json:"displayName,omitempty"`
	Description      string           `json:"description,omitempty"`
	DocumentationURL string           `json:"documentationURL,omitempty"`
	Type             v1.CatalogueType `json:"type"`
	VersionOrigin
	// Digest covers the version's content; it changes when an admin changes what the version is.
	Digest      string          `json:"digest,omitempty"`
	Deprecated  string          `json:"deprecated,omitempty"`
	Method      v1.Method       `json:"method,omitempty"`
	Constraints *v1.Constraints `json:"constraints,omitempty"`
	// FormSpec are the fields that a user fills in; never nil.
	FormSpec []v1.FormField `json:"formSpec"`
}

// Detail describes one version by any spelling of its name; false where the add-on has none such. The result shares parts
// with the entry and must not be changed.
func (e *Entry) Detail(version string) (VersionDetail, bool) {
	found := e.find(version)
	if found == nil {
		return VersionDetail{}, false
	}
	detail := VersionDetail{
		Addon: string(e.Addon.Name), DisplayName: e.Addon.DisplayName,
		Description: e.Addon.Description, DocumentationURL: e.Addon.DocumentationURL, Type: e.Type,
		VersionOrigin: found.named(), Digest: found.origin.Digest, Deprecated: found.version.Deprecated,
		Constraints: found.version.Constraints, FormSpec: []v1.FormField{},
	}
	if detail.Type == "" {
		detail.Type = v1.CatalogueCustom
	}
	if template := found.version.Template; template != nil {
		detail.Method = template.Method
		if template.FormSpec != nil {
			detail.FormSpec = template.FormSpec
		}
	}
	return detail, true
}
