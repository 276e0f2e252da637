// Package store stores fetched content and answers at once.
//
// A reference is resolved once per interval for all installations. A new revision is fetched and
// unpacked once, into a folder named by the content's digest. Missing content is fetched in the
// background by a bounded number of jobs, a few per host; the caller gets fetch.ErrPending and is
// woken.
//
// An entry is a reference with its credentials. Other credentials make another entry, which
// resolves and fetches with those, so it gets only what the server gives it. On disk, equal content
// is one folder.
//
// Mirrors replace references first, so that an entry is what is really requested.
//
// A failed request is retried with back-off, and not before the server's Retry-After. While a host
// is down, Get returns the last content. If the host answers no (not found, refused, unauthorized),
// so does Get.
//
// What is kept and what is being fetched never take more than the limit: see space.go.
//
// On disk:
//
//	content/<hex>   unpacked, read-only, created by renaming
//	work/           unfinished downloads; emptied at start
//	index.json      revision and content by reference, so that a restart fetches nothing
//
// The index names references by a keyed, stretched hash, which protects credentials.
package store
