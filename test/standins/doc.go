// Package standins makes platforms of thousands of user clusters out of one API server: KKP's Clusters with their namespaces,
// and a Player that is to AddonInstallations what the installation controller is, but for the user clusters: it applies nothing,
// and what becomes of each installation stands in a script.
//
//	clusters := standins.NewClusters(t, config)
//	clusters.Make(t, standins.Shape{Count: 5000, Labels: func(i int) map[string]string { ... }})
//	player := standins.Play(t, config, standins.Rule{Of: standins.InClusters("c00007"), Act: standins.Act{Fate: standins.RollsBack}})
//	... player.Direct(rules...) // another script, from now on
//
// The API server is a real one, and so is all that is written to it: finalizers, conditions with their transition times, what was
// applied last and when. What the real controller writes is told by its status.go, and by ADR 22 for rollbacks. Two things
// of it are easily forgotten by who reads a status, and are played as they are: a change that is applied and healthy within one pass
// leaves Ready=True with the transition time of before; and what was rolled back, has the old version in status.version and
// in status.lastApplied, with the time of the rollback.
//
// Start runs the controller of sets in a process of its own, and no manager: in that the installation controller would do what the
// Player does. Copies of sets and merged catalogues are written by the test (Copies) where the waves of one seed are what is tried;
// test/seeds and test/sets have the real distributor.
//
// Nothing is random: whoever is chosen, and how long something takes, follows from names and a seed.
package standins
