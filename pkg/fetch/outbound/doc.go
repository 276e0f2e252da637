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
//   - redirects at most three, never to a lower scheme, and to another host only if the caller
//     allows it;
//   - credentials are sent to the scheme, host and port of the reference and to the hosts their Secret
//     names, and never after a redirect to another host, not even one that leads back;
//   - every answer has a byte cap, an idle deadline and a total deadline; nothing is read ahead
//     into memory;
//   - one host gets four of our requests at a time, none for as long as it requests (Retry-After,
//     ten minutes at most), and none for a while after it could not be reached three times in a row:
//     meanwhile requests fail at once and keep no other request waiting;
//   - URLs on another host, from an index or a redirect, are fetched from that host's mirror, if
//     there is one;
//   - no proxy from the environment, no cookies, no transparent decompression.
//
// Errors have the URL without user, password and query. They are types of package fetch:
// RefusedError for a broken rule, UnavailableError if a retry may help, UnauthorizedError
// for credentials.
package outbound
