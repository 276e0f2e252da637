// Package crash kills the installation controller with kill -9 at the writes that it makes, and checks that the end is the same: at all
// of them in make test-long, at some with -short. It also takes away what the controller depends on: API servers,
// Clusters, kubeconfigs, answers.
//
// # How it kills
//
// The product has no part in it. The controller runs in a process of its own, which is this test binary started again, and
// reaches the seed and the user cluster through gates (package gate). A gate sees each write before the API server does, and
// each answer before the controller does. At the boundary in question it kills the controller, and lets nothing through any
// more. What the controller sent at the same time by other connections may arrive or not, as in life.
//
// # What is told
//
// A story is one edit: install, upgrade, remove, adopt what another client applied, ask for what fails and is rolled back,
// by either method. First it is carried out by a controller that is not killed.
// The writes that came by are the boundaries: each one is named by method, path and its number, never by a counter over all,
// since objects of one stage are written in any order. Then, for each boundary and either side (with -short for some of
// them, which TRELLIS_ROTATION chooses), an installation with a Cluster of its own begins the same story and has its
// controller killed there. A controller that is not
// killed serves them all afterwards. What the user cluster has then, with generations and field managers, and what the seed has,
// records and status, must be what the clean run left, but for identities and times; and of every object whether it is the one that stood
// there when the story began. At last everything is removed, and nothing may be left but what is not the installation's to
// remove.
//
// Status is not written in the same number of steps in each run: how many there are depends on what a pass sees on its way; nor is
// what is refused, which each look tries again. Such a boundary that is not come by is counted and is no failure; any other is.
//
// # The pull Secret
//
// pullstories_test.go has stories of the copies of the platform's pull Secret: they come, follow an upgrade and another password, are put
// back, and go. It kills at writes of copies and of their record; in the end each copy is right, and on record under its UID.
//
// # Credentials
//
// accessstories_test.go has stories of agents' credentials for the hub, by token and by certificate: issue, renewal at a later time,
// rotation, end, removal. In the end the agent has the very credential that is stored, which is good for what its rules allow; former
// ones are refused; and nobody was asked to approve more requests than in a clean run.
//
// # What else goes away
//
// outage_test.go and removal_test.go have the rows of the threat model in which the user cluster, its Cluster object or its
// kubeconfig goes, for good or for a while, in the middle of an installation or of its removal. Gates count the calls there,
// and cut them. quiet_test.go sees that an installation at rest makes none.
//
// A new object in an add-on, or a hook in the chart, is a few lines in stories_test.go; its boundaries are found by
// themselves.
package crash
