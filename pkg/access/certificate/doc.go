// Package certificate has what an agent's client certificate is made of: a key, the request for it, and what is looked at in the
// certificate that a signer gave for it before anybody gets it.
//
// Those who may write the status of CertificateSigningRequests decide what is there, and a signer may be anybody's program. So
// what is signed counts as foreign bytes, and is taken only if it is what was asked for: our key, our user and groups, for clients
// and nothing else, now. Who signed it is not looked at, since signers other than the API server's have authorities of their own.
//
// Request and Check have no effects, and take the clock as an argument. NewKey takes no source of randomness: since Go 1.26
// crypto/ecdsa uses the system's, whatever reader it is given.
package certificate
