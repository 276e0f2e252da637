// Package archive unpacks foreign content into a folder: archives by Extract, archives entry by entry by Each, which the
// layers of images need, and whatever else has names and bytes by Folder, which all of them and the reader of git trees
// share.
//
// It knows regular files and directories and nothing else. Links, devices, sparse files and whatever tar may learn next are
// refused with their path: a tree without links can't lead out of itself, however it is read later. (The extractors of
// Helm and of the container libraries let links through or had to be mended several times.) Modes, owners and times are
// dropped: files come out readable, directories listable.
//
// Limits are counted while bytes flow, not believed from headers. Everything that breaks a rule is a fetch.RefusedError that
// names the path; what a folder holds after an error is to be thrown away by the caller.
package archive
