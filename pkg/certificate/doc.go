// Package certificate keeps a serving certificate of our own, where neither cert-manager nor an operator brings one: that of
// the admission webhooks, and that of the query endpoint.
//
// Certificate and authority stand in one Secret, which every replica reads and any may renew: the Secret's resourceVersion
// lets one of them win, and the others serve what it wrote. A Keeper reads it once a minute. It
//
//	reads the Secret
//	renews what is missing, unreadable, for other hosts, or within a third of its life from its end
//	publishes what is in the Secret to those who have to trust it, where somebody has to
//	and only then serves the certificate
//
// so that whoever connects trusts a certificate before it is shown. There are two kinds of authorities, by who trusts them:
//
//   - An authority for each certificate, whose key is thrown away once it has signed: nobody can make another certificate that
//     the API server would trust for us. Earlier authorities stay in the bundle until they expire, so that replicas that have
//     not read the new Secret yet are trusted too. This is for those who are told of a new one, as the API server is.
//   - A lasting one, of ten years, whose key stays in the Secret and signs every renewal. This is for those who keep a copy.
//
// A Secret that is not its owner's, as its label tells, is served as it is and never written. Errors say nothing of a Secret's
// content.
package certificate
