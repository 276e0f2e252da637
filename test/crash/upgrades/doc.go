// Package upgrades kills the controllers of a seed that an upgrade of a Cluster of Cluster API meets, with kill -9 before and after every
// write that they make, and checks that nothing is let go early, and that the end is the same. It is to upgrades what package crash is to
// installations; how it kills stands there.
//
// # What runs
//
// Controllers addon, coreaddon, addonset and clusterupgrade, in a process of their own, for one Cluster with two gates: a network that
// a set per release has, and storage on the core list, in a range. The network moves before the control plane does, storage before
// workers do.
//
// # What is played
//
// Cluster API, its provider and the installation controller. Versions turn in status only: the golden story of upgrades has servers
// that start as another release, and Cluster API's own manager. The player moves nothing while a hold is on, be it ours or another's,
// and moves at once where none is. Which version an installation comes to, the product's own rules choose.
//
// # What has to be kept
//
// When the player moves the control plane, each gate is Ready at the version that fits both sides; when it moves the template of a pool,
// each is right at the new version. Besides, every state is looked at that the Cluster and condition UpgradeHeld come through: the hook
// is never put on while an upgrade is pending, never off before workers are held, and a stage keeps its clock. Hook and hold go on
// and off once, over all processes, and the Cluster is written twice, as in a clean run: a kill repeats no write of it, since what is to
// be on it is read off it. At the end Cluster, condition, installations with their UIDs, and sets are as after a clean run.
//
// # What else happens to a process
//
// It is killed in a stage, and away until the stage's time is over (clock_test.go); it is stopped for longer than its lease while another
// one leads, and two lead at the same time (replicas_test.go).
//
// How often a status is written depends on what a pass sees on its way. A boundary of one that is not come by again is counted and is no
// failure; any other is.
package upgrades
