// Package archive unpacks foreign content into a folder: archives by Extract, archives entry by
// entry by Each, which the layers of images need, and other trees of names and bytes by Folder,
// which both and the reader of git trees use.
//
// It knows regular files and directories and nothing else. Links, devices, sparse files and types
// that tar may get later are refused with their path: a tree without links can't lead out of
// itself, however it is read later. (The extractors of Helm and of the container libraries let
// links through or had to be corrected several times.) Modes, owners and times are dropped: files
// come out readable, directories listable.
//
// Limits are counted while bytes are read, not taken from headers. Content that breaks a rule is a
// fetch.RefusedError that names the path; the caller throws away what a folder holds after an
// error.
package archive
