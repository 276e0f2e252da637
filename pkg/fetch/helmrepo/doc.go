// Package helmrepo fetches charts of Helm repositories (https, index.yaml) and registries.
//
// The index of a public repository has tens of MiB and thousands of charts, of which a seed needs a few. It is split
// into charts and entries while it is read, and only entries of requested charts are decoded, one at a time. YAML
// needs up to a hundred times its size in memory, so the limits of an entry, in bytes and values, bound a hostile
// index; anchors don't reach the next entry. Its entries of requested versions are cached with ETag and
// Last-Modified, so that an unchanged index costs one request without content; little else is cached, since
// catalogues may name any number of indexes. Each owner of references has its own cache: the requests of one owner
// never cause refusals for others.
//
// An archive is downloaded to a file, compared with the index's digest, and unpacked by package archive, not by
// Helm's loaders. It may be on another host, which gets no credentials unless their Secret names it. Two entries for
// one version are refused (CVE-2020-15185).
//
// oci:// has no index: a chart is an artifact in a registry, the version its tag ("_" for "+"), its archive the one
// layer of a chart's type. Fetch requests the digest to which Resolve resolved the tag.
package helmrepo
