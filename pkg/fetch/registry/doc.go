// Package registry reads OCI registries: manifests by tag or digest, and blobs by digest. Packages
// image and helmrepo use it.
//
// Names and manifests are read with go-containerregistry. Requests go through outbound.Network,
// since a registry can make a client do dangerous things:
//
//   - a registry names the place where tokens are made (the realm). Credentials go there only if it
//     is the registry's own scheme, host and port, or the Secret names its host; an anonymous token
//     may come from any host;
//   - manifests and blobs may be redirected to another host, which gets neither credentials nor
//     token, also not when it asks for them;
//   - the scope of a token is always "pull" of the one repository, also where the challenge asks
//     for another;
//   - a digest is computed, never believed: a manifest and a blob are what their digest says, or an
//     error;
//   - a manifest has 1 MiB at most and 20,000 elements, which are counted before it is decoded, a
//     token's answer 1 MiB, a blob the size that its descriptor says.
//
// Registries are used by https only, in labs too.
package registry
