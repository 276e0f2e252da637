// Package outbound is the only way to servers of content.
//
// Authors of catalogues choose the URLs that this process opens, and servers choose redirects. So
// all requests go through a Network with these rules:
//
//   - the address is checked when it is dialled, after the name was resolved, and the checked
//     address is the one that is dialled: a name that answers with a public address first and an
//     internal one later gains nothing;
//   - https only, unless the operator allows plain http for labs; TLS 1.2 at least, a custom CA
//     instead of the system's;
//   - redirects at most three, never to a lower scheme, and to another host only where the caller
//     says so;
//   - credentials go to the scheme, host and port of the reference and to the hosts their Secret
//     names, and never survive a redirect to another host, not even one that leads back;
//   - every answer has a byte cap, an idle deadline and a total deadline; nothing is read ahead
//     into memory;
//   - one host has four requests of ours at a time, gets none for as long as it asks (Retry-After,
//     ten minutes at most), and none for a while where it can't be reached three times in a row:
//     meanwhile requests fail at once and keep no other request waiting;
//   - what an index or a redirect names on another host is fetched from that host's mirror, where
//     there is one;
//   - no proxy from the environment, no cookies, no transparent decompression.
//
// Errors have the URL without user, password and query. They are types of package fetch:
// RefusedError for a broken rule, UnavailableError for what may work later, UnauthorizedError for
// credentials.
package outbound
