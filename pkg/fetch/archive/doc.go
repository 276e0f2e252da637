// Package archive unpacks foreign content into a folder: whole archives by Extract, entry by entry by Each (for image
// layers), and other trees by Folder, which both and the reader of git trees use.
//
// It accepts only regular files and directories. Links, devices, sparse files and unknown types are refused with
// their path: a tree without links can't lead out of itself. (The extractors of Helm and of container libraries
// allowed links or had several fixes for them.) Modes, owners and times are dropped: files become readable,
// directories listable.
//
// Limits count the bytes that are read, including skipped ones, but not those of headers. Content that breaks a rule
// is a fetch.RefusedError with the path; after an error the caller deletes the folder's content.
package archive
