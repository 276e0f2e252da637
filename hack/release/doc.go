// Command release writes all that is handed out of one commit into a folder: images, charts, CRDs,
// what clusterctl takes, checksums and notes. docs/spec/release.md says what each file is for.
package main
