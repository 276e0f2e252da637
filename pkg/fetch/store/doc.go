// Package store keeps fetched content and answers at once.
//
// A reference is resolved once per interval, however many installations ask for it. A revision that
// is new is fetched once, unpacked once, and kept in a folder named by the digest of its content.
// Content that is asked for and not there is fetched in the background by a bounded number of jobs,
// a few per host; the caller gets fetch.ErrPending and is woken.
//
// An entry stands for a reference with its credentials. Other credentials, or none, make another
// entry, which resolves and fetches with those, and so gets no content that the server would not
// give it. Only on disk, equal content is one folder.
//
// References are replaced by their mirrors before anything else, so that an entry stands for what
// is really asked.
//
// A failed request is repeated with growing pauses, and not before the time that the server asked
// for. Content that was fetched before is handed out while its host is down. If the host answers
// and says no (not found, refused, unauthorized), Get says so.
//
// On disk:
//
//	content/<hex>   unpacked, read-only, made by renaming
//	work/           what is under way; emptied at start
//	index.json      which reference named which revision and content, so that a restart fetches nothing
//
// The index names references by a hash, keyed and stretched, that does not give away credentials.
package store
