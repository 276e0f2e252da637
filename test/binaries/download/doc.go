// Package download gets programs of control planes from their projects' own releases in place of compiling them, by the URLs
// and checksums of hack/controlplanes/downloads.json. A program without a checksum there is compiled. Nothing is kept of a
// file whose checksum differs.
package download
