// Package image fetches folders of container images.
//
// An image is a list of layers, archives that cover each other: a later layer hides entries of earlier ones, also by
// entries named .wh.… (whiteouts). They are unpacked from last to first, so hidden files are never written, and
// written ones never changed. Only content below the reference's path is unpacked; the rest of an image may be
// anything.
//
// A tag is resolved to its digest, of the index if it names one, and fetched by that. Of an index the image for
// linux/amd64 is used, otherwise the first for linux or without a platform: manifests of add-ons are the same for
// all. Attestations are skipped. An index of indexes is refused.
//
// Foreign or encrypted layers are refused, also artifacts that are no images, more than 64 layers or 200 MiB of them,
// and visible entries that package archive refuses, such as links. Each layer is downloaded to a nameless file and
// compared with its digest before it is opened.
package image
