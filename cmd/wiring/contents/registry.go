package contents

import (
	"context"
	"errors"

	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
	"github.com/trellis-addons/trellis/pkg/fetch/registry"
)

// Registries reads registries from a person's machine.
type Registries struct {
	network     *outbound.Network
	credentials fetch.Credentials
}

// NewRegistries makes Registries with the logins of a Docker config and a certificate authority; either may be empty.
func NewRegistries(dockerConfig, authority []byte) *Registries {
	return &Registries{
		network:     outbound.New(outbound.Options{AllowCIDRs: anywhere}),
		credentials: fetch.Credentials{DockerConfig: dockerConfig, CA: authority},
	}
}

// Digest is the digest of the manifest that a repository has for a reference; "" if it has none.
func (r *Registries) Digest(ctx context.Context, reference string) (string, error) {
	parsed, err := registry.Parse(reference)
	if err != nil {
		return "", err
	}
	session, err := registry.Open(r.network, parsed.Repository, r.credentials)
	if err != nil {
		return "", err
	}
	found, err := session.Manifest(ctx, parsed.Word())
	if _, isMissing := errors.AsType[*fetch.NotFoundError](err); isMissing {
		return "", nil
	} else if err != nil {
		return "", err
	}
	return found.Digest, nil
}
