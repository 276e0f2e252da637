// Package boot tells how new Clusters of Cluster API get their add-ons: Cluster API's own manager makes the Clusters of a ClusterClass, the
// program of a seed sees them come up, and real API servers become their user clusters. Nobody runs pods: a test says when a Deployment
// works.
package boot
