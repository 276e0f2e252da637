package apply

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
)

// Target is one user cluster as the engine sees it.
type Target struct {
	// Metadata writes and lists: its answers carry metadata only, whatever the object's size.
	Metadata metadata.Interface
	// Dynamic reads whole objects, for health.
	Dynamic dynamic.Interface
	// Mapper knows the served kinds; it can be reset when a CRD has been established.
	Mapper meta.ResettableRESTMapper
	// Served tells all served kinds, to look into a namespace before it is removed; without it no namespace is removed.
	Served Served
}

// Served tells what an API server serves, as of the mapper's last reset.
type Served interface {
	// APIVersions are served group versions and kinds: "apps/v1", "apps/v1/Deployment", "v1/Pod".
	APIVersions() []string
	// MissingGroups are the groups, or group versions, whose kinds can't be told at the moment.
	MissingGroups() []string
}
