// Package registry reads OCI registries: manifests by tag or digest, and blobs by digest. It is what packages image and
// helmrepo stand on.
//
// Names and manifests are read with go-containerregistry; requests are made here, through outbound.Network, since what a
// registry may make a client do is the delicate part:
//
//   - a registry names the place where tokens are made (the realm). Credentials go there only if it is the registry's own
//     scheme, host and port, or the Secret names its host; an anonymous token may come from anywhere;
//   - manifests and blobs may be redirected to another host, which gets neither credentials nor token, also not when it asks
//     for them;
//   - what is asked is what this package says: the scope is "pull" of the one repository, whatever the challenge asks for;
//   - a digest is computed, never believed: a manifest and a blob are what their digest says, or an error;
//   - a manifest has 4 MiB at most, a token's answer 1 MiB, a blob the size that its descriptor says.
//
// Registries are spoken to by https, in labs too.
package registry
