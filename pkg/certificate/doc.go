// Package certificate keeps the webhooks' serving certificate where no cert-manager does.
//
// Certificate and authority stand in one Secret, which every replica reads and any may renew: the Secret's resourceVersion
// lets one of them win, and the others take what it wrote. A Keeper looks once a minute. It
//
//	reads the Secret
//	renews what is missing, unreadable, for other hosts, or within a third of its life from its end
//	writes the authorities to the caBundle of the webhook configuration, and below a secret path the webhooks' paths, where they differ
//	and only then serves the certificate
//
// so that the API server trusts a certificate before anybody shows it. Each renewal makes an authority of its own, whose key
// is thrown away once it has signed: nobody can make another certificate that the API server would trust for us. The bundle
// keeps earlier authorities until they expire, so that replicas that have not looked yet are trusted too.
//
// The secret path is made once and stays: it is what tells the API server from others who reach the port. A Secret that is emptied gets a
// new one.
//
// The Secret and the configuration come with the chart; the manager may change these two by name, and creates neither.
package certificate
