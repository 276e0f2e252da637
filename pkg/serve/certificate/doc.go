// Package certificate maintains a serving certificate of our own, for the admission webhooks and
// the query endpoint, if neither cert-manager nor an operator provides one.
//
// Certificate and authority are in one Secret. Every replica reads it once a minute, and any may
// renew it: by resourceVersion one write wins, and the other replicas use its result. In this
// order, a Rotator
//
//	reads the Secret
//	renews a certificate that is missing, unreadable, for other hosts, or in the last third of its life
//	publishes the Secret's content to its clients, if there is a Publisher
//	serves the certificate
//
// so that clients trust a certificate before they see it. There are two kinds of authorities:
//
//   - An authority for each certificate, whose key is discarded once it has signed: no other
//     certificate can be made that the API server would accept as ours. Earlier authorities stay in
//     the bundle until they expire, so that replicas that have not read the new Secret yet are
//     trusted too. This is for clients that are updated, as the API server is.
//   - A lasting one, of ten years, whose key stays in the Secret and signs every renewal. This is
//     for clients that keep a copy.
//
// A Secret without its owner's label is served but never written. Errors contain no secret data.
//
//rights:master-platform get secrets -- the webhooks' certificate
//rights:master-platform update secrets names={webhook-secret} if=own-certificate -- the webhooks' certificate
//rights:seed get,create,update secrets -- the certificates of webhooks and query endpoint
package certificate
