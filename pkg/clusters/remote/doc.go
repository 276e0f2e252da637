// Package remote makes HTTP clients for API servers that others control, of user clusters (tenants) and of seeds.
// Only this package bounds their answers.
//
// An answer costs more than its bytes: "{}" becomes an object of hundreds of bytes, and client-go reads a whole
// answer before it decodes it. So a scanner (scanner.go for JSON, protobuf.go for Kubernetes' protobuf) counts
// values, depth, lengths and elements while a body is read, and fails beyond the limits of the request (limits.go).
// It needs linear time and no memory. Other forms are refused: YAML has aliases. A failure in another form is
// returned as truncated plain text.
//
// Totals. Within makes calls count together, such as the pages of a list or a reconciliation; a nested ledger counts
// in both. A client counts the bytes of all its bodies in a minute.
//
// Watches. Watch is the one stream: events are lines of metadata, of which only names are returned, each bounded, and
// all until it ends (watch.go). Other streams are refused.
//
// Memory. All clients of a process share a Budget. An answer that is being read has a place by its size, with a share
// for each client. A complete answer waits for its weight and returns it after decoding: callers use Hold, or the
// clients of clients.go. A slow server holds no weight; small answers need neither.
//
// Time. Each step of a call has a deadline. A body sends at least 64 KiB in five seconds, ten at first (body.go), not
// counting waits for our own budget. Retry-After is bounded.
//
// Connections. A gauge below TLS compares received bytes with those of answers: HTTP/2 pings, empty frames or endless
// headers close the connection (traffic.go). Redirects, proxies and compression are not used, headers are bounded,
// and addresses that no API server can have are refused.
//
// Figures. Requests are counted by verb and result (metrics.go), of all servers together: a new cluster adds no
// series.
//
// Violations are a MisbehavesError or a TooSlowError. The client's owner gets them too, to stop calling the server
// for a while. Errors contain no text of an answer.
package remote
