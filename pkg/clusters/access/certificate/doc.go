// Package certificate makes the parts of an agent's client certificate: a key and the request for it. It checks the certificate
// that a signer issued before an agent gets it.
//
// Clients that can write the status of CertificateSigningRequests decide about its content, and a signer may be any program. So a
// signed certificate counts as foreign bytes. It is accepted only if it is what was requested: our key, our user and groups, for
// clients and nothing else, now. Its signer is not checked, since signers other than the API server's have their own authorities.
//
// Request and Check have no effects, and take the clock as an argument. NewKey takes no source of randomness: since Go 1.26
// crypto/ecdsa uses the system's, regardless of the reader.
package certificate
