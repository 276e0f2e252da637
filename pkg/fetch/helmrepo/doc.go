// Package helmrepo gets charts out of Helm repositories: an index.yaml over https with the archives
// that it names, and registries.
//
// The index of a public repository has tens of MiB and thousands of charts, of which a seed wants a
// few. So it is never decoded as a whole: its lines are cut into charts and their entries while
// they are read, and of the charts that are asked for one entry is decoded at a time. YAML takes up
// to fifty times its size in memory, so the limit on an entry is what keeps a hostile index small;
// an anchor in one entry is unknown in the next. The result is kept with ETag and Last-Modified, so
// that an unchanged index costs one request without content.
//
// An archive is fetched to a file, compared with the digest of the index, and unpacked by package
// archive; Helm's loaders and its downloader are not used. It may lie on another host, which gets
// no credentials unless their Secret names it. Two entries for one version are refused: which one
// counts would be chance (CVE-2020-15185).
//
// Behind oci:// there is no index: a chart is an artifact in a registry, the version its tag ("_"
// for "+"), and its archive the one layer of a chart's type. A tag is resolved once: what is
// fetched is the digest that it led to.
package helmrepo
