// Package sandbox is a whole platform on one machine: a master, two seeds, two user clusters each, of different Kubernetes
// minors, with real sources, both managers as containers of their charts' pods (package pod) and a sample catalogue (deploy/sandbox).
// Another kind has one management cluster of Cluster API, which is master and seed, and two of its Clusters.
//
// The command hack/sandbox and the demo are thin uses of it. Everything it makes lies in one folder, .sandbox by default,
// and goes with it, except what others put among the sources. A file "ready" in the folder says that all of it is
// usable; the lock on the file "pid" says that it runs.
package sandbox
