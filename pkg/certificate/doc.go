// Package certificate keeps a serving certificate of our own, where neither cert-manager nor an
// operator brings one: that of the admission webhooks, and that of the query endpoint.
//
// Certificate and authority are in one Secret, which every replica reads and any may renew. The
// Secret's resourceVersion lets one of them win, and the others serve what it wrote. A Keeper reads
// the Secret once a minute. In this order, it
//
//	reads the Secret
//	renews what is missing, unreadable, for other hosts, or within a third of its life from its end
//	publishes what is in the Secret to its clients, where there is a Publisher
//	serves the certificate
//
// so that clients trust a certificate before they see it. There are two kinds of authorities:
//
//   - An authority for each certificate, whose key is thrown away once it has signed: no other
//     certificate can be made that the API server would accept as ours. Earlier authorities stay in
//     the bundle until they expire, so that replicas that have not read the new Secret yet are
//     trusted too. This is for clients that are told of a new one, as the API server is.
//   - A lasting one, of ten years, whose key stays in the Secret and signs every renewal. This is
//     for clients that keep a copy.
//
// A Secret that is not its owner's, by its label, is served as it is and never written. Errors
// never repeat what a Secret holds.
package certificate
