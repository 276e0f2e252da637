package view

import (
	"strconv"

	"github.com/trellis-addons/trellis/pkg/base/text"
)

// Contents are what installations run. It is JSON of the query endpoint.
type Contents struct {
	Contents []Content `json:"contents"`
	Total    int       `json:"total"`
	// Truncated: there are more contents, or the caller may list more namespaces than were reviewed.
	Truncated bool `json:"truncated,omitempty"`
}

// ContentContainer is the kind of images that the containers of objects run.
const ContentContainer = "Container"

// ContentKey is one image, chart or repository that installations run.
type ContentKey struct {
	// Kind is that of the source of an add-on, Unknown, or Container for an image of the objects.
	Kind string `json:"kind"`
	// Reference is the image's, the repository and chart, or the repository; of unknown content, add-on and version. That of a container's
	// image has neither tag nor digest.
	Reference string `json:"reference"`
	// Revision is the digest of an add-on's image, the chart's version, the commit, or the tag of a container's image without digest.
	Revision string `json:"revision,omitempty"`
	// Digest of the files, or of a container's image.
	Digest string `json:"digest,omitempty"`
}

// Content is one content with its users.
type Content struct {
	ContentKey
	Count int `json:"count"`
	// Installations are the first ones, as namespace/name.
	Installations []string `json:"installations"`
}

// Table has a row for each content.
func (c *Contents) Table() Table {
	table := NewTable("KIND", "REFERENCE", "REVISION", "USES", "DIGEST*", "INSTALLATIONS*")
	for _, one := range c.Contents {
		table.Add(Of(one.Kind, one.Reference, one.Revision, strconv.Itoa(one.Count), one.Digest, text.Names(one.Installations, 10))...)
	}
	return table
}
