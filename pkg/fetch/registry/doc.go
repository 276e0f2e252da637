// Package registry reads OCI registries: manifests by tag or digest, and blobs by digest. Packages image and helmrepo
// use it.
//
// Names and manifests are parsed with go-containerregistry. Requests go through outbound.Network, since a registry
// can make a client do dangerous things:
//
//   - a registry names the server that issues tokens (the realm). Credentials are sent there only if it
//     is the registry's own scheme, host and port, or the Secret names its host; an anonymous token
//     may come from any host;
//   - manifests and blobs may be redirected to another host, which gets neither credentials nor
//     token, even if it requests them;
//   - the scope of a token is always "pull" of the one repository, even if the challenge requests
//     another;
//   - digests are always computed: a manifest or a blob that does not match its digest is an
//     error;
//   - a manifest has at most 1 MiB and 20,000 elements, which are counted before it is decoded, a
//     token's answer 1 MiB, a blob the size in its descriptor.
//
// Registries are used over https only, also in labs.
package registry
