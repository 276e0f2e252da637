// Package store stores fetched content and answers at once.
//
// A reference is resolved once per interval for all installations. A new revision is fetched and unpacked once, into
// a folder named by the content's digest. Missing content is fetched in the background by a limited number of jobs, a
// few per host; the caller gets fetch.ErrPending and is woken.
//
// An entry is a reference with its credentials. Other credentials make another entry, which resolves and fetches with
// those, so it gets only the content that the server gives it. On disk, equal content is one folder.
//
// Mirrors replace references first, so an entry is the reference that is really requested.
//
// A failed request is retried with back-off, and not before the server's Retry-After. While a host is down, Get
// returns the last content. If the host refuses (not found, refused, unauthorized), Get returns that error.
//
// Stored content and running fetches never take more than the limit, which also limits the number of contents: see
// space.go (ADR 131). Each owner decodes two contents at a time (ADR 132).
//
// On disk:
//
//	content/<hex>   unpacked, read-only, created by renaming
//	work/           unfinished downloads, and content that is being removed; emptied at start
//	index.json      revision and content by reference, so that a restart fetches nothing
//
// The index names references by a keyed, stretched hash, which protects credentials.
package store
