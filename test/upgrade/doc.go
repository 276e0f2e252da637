// Package upgrade puts one release in the place of another, and counts what that does to what is installed: upgrades and rollbacks of
// charts, managers of two releases beside each other, and a seed that came back from a backup.
//
// The other release is a commit (flag -former for upgrades), out of the repository's own history: its charts are installed by Helm, its
// programs are built once and kept in the cache. A program runs as the pod of the Deployment in the API server (package pod). What the
// managers wrote is read from the audit logs of the API servers, which know more than a manager says of itself.
package upgrade
