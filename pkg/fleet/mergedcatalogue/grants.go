package mergedcatalogue

import (
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/fleet/installation"
)

// ValuesDigest is the keyed digest of values of the platform; empty without a key: then nothing is granted.
func (m *Marks) ValuesDigest(secret, key string, data []byte) string {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.key == nil {
		return ""
	}
	return installation.ValuesDigest(m.key, secret, key, data)
}

// Grant signs a grant for an installation; empty without a key.
func (m *Marks) Grant(grant installation.Grant, of *v1.AddonInstallation) string {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.key == nil {
		return ""
	}
	return grant.Sign(m.key, of)
}

// Granted is an installation's right to the platform's values, by its annotation. False: the annotation is no grant
// for it.
func (m *Marks) Granted(live *v1.AddonInstallation) (installation.Grant, bool) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	grant, isGrant := installation.ReadGrant(live.Annotations[v1.AnnotationPlatformValues])
	return grant, isGrant && m.key != nil && grant.IsFor(m.key, live)
}
