// Package remote makes the HTTP clients for API servers that others control: those of user
// clusters, which belong to tenants, and those of seeds. It is the one place where their answers
// are bounded.
//
// An answer costs its reader far more than its bytes: "{}" takes three of them and becomes an
// object of hundreds, and client-go reads a whole answer before it decodes it. So bodies pass a
// scanner on their way (scanner.go for JSON, protobuf.go for Kubernetes' protobuf), which counts
// values, depth, lengths and elements by limits that depend on what was asked for (limits.go), and
// fails the read beyond them. It takes time in proportion to the bytes and no memory. What is
// neither form is refused: YAML has aliases, and streams have no end. A failure that is neither is
// handed on as plain text, cut.
//
// Totals. Within gives a context whose calls count together, such as the pages of a list or all
// calls of a pass; a ledger inside of another one counts in both. A client counts what all its
// bodies have in a minute.
//
// Memory. All clients of a process share a Budget. An answer that is still coming holds a place by
// its size, with a share for each client; once it is there it waits for its weight, which it gives
// back when it has been decoded: Hold says when that is, and the clients of clients.go do so by
// themselves. Only computing holds weight, so a slow server keeps no other waiting; small answers
// need neither.
//
// Time. Each step of a call has a deadline. A body comes at 64 KiB in five seconds at least, the
// first time in ten (body.go); what waits for our own budget is excused. Retry-After is cut.
//
// Connections. A gauge below TLS compares what comes in with what answers explain: HTTP/2 pings,
// empty frames and headers without end close the connection (traffic.go). Redirects are not
// followed, proxies and compression not used, headers bounded, and addresses at which no API server
// is are not dialled.
//
// What goes beyond is a MisbehavesError or a TooSlowError, which the owner of the client is told of
// too, so that it can stop calling the server for a while. Errors say what was asked and what was
// done, in words of our own, and hold no text of an answer.
package remote
