// Package signer is a signer of certificates for tests: of another name than Kubernetes' own, such as signer.example.com/agents. It
// watches the requests of its name on an API server and signs those that are approved, with an authority of its own. It can be told to
// lie, in every way in which a certificate may be another than the one that was asked for.
//
//	s := signer.New(t, "signer.example.com/agents")
//	s.Start(t, fleet.Shared().Cluster("seed").Config)
//	s.Lie(signer.OtherKey)
//
// Nothing here approves: that is the test's, or the product's.
package signer
