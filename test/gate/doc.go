// Package gate puts a proxy in front of an API server of a fleet, so that tests see every call of a client and decide what
// becomes of it: it may be counted, held, or cut, before it reaches the API server or before its answer reaches the client.
// The client needs no seam for it: it gets a kubeconfig that leads to the gate, with a token that says who it is.
//
// A Killer sees the writes of one process at its gates, and kills it before or after one of them (killer.go).
//
// A gate that is shut refuses connections on its port, as an API server does that was killed.
package gate
