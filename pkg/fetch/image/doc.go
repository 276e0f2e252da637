// Package image gets folders out of container images.
//
// An image is a list of layers, archives that cover each other: a later layer hides what earlier
// ones have, and entries named .wh.… take away (whiteouts). They are unpacked here from the last to
// the first, so that hidden files are never written, and nothing that was written is taken away or
// changed: package archive needs no more than it has. Only what lies below the reference's path is
// unpacked; the rest of an image may hold anything.
//
// A tag is resolved to the digest that it names, and fetched by that: the digest of the index,
// where it names one. Of an index the image for linux/amd64 is taken, else the first one for linux
// or for no platform at all: add-ons are manifests, and the same on all of them. Attestations are
// passed over. An index of indexes is refused.
//
// Refused, with the reason: layers that lie elsewhere (foreign layers, urls), encrypted layers,
// artifacts that are no image, more than 64 layers, more than 200 MiB of them, and what package
// archive refuses, links above all, where it is visible. Each layer is downloaded to a file without
// a name and compared with its digest before it is opened.
package image
