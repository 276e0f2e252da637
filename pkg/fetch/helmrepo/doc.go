// Package helmrepo gets charts out of Helm repositories: an index.yaml over https, and the archives that it names.
//
// The index of a public repository has tens of MiB and thousands of charts, of which a seed wants a few. So it is never
// decoded as a whole: its lines are cut into the blocks of charts while they come, and only the blocks that somebody asked
// for are decoded. What came is remembered with ETag and Last-Modified, so that an unchanged index costs one request
// without content.
//
// An archive is fetched to a file, compared with the digest of the index, and unpacked by package archive; Helm's
// loaders and its downloader are not used. It may lie on another host, which gets no credentials unless their Secret
// names it. Two entries for one version are refused: which one counts would be luck (CVE-2020-15185).
//
// Repositories behind oci:// are refused; registries are not served by this release.
package helmrepo
