// Package fairqueue is the work queue of a controller whose objects belong to clusters that others control.
//
// # Fair between clusters
//
// Clusters with ready objects take turns, one object each. Objects of one cluster are processed in the order in which
// they became ready. A cluster has at most its share of the workers at a time, even while other workers are idle. So
// however much work one cluster has, another one waits for one turn at most.
//
// A tenant may have several clusters. Tenants take turns, and so do the clusters of a tenant; the share of the
// workers is the tenant's, regardless of the number of its clusters. One cluster among several has at most one worker
// less than the share, so that its neighbours need not wait for its reconciliations.
//
// # Slow clusters
//
// A reconciliation that takes longer than Limits.SlowAfter makes its cluster slow. Slow clusters take turns in a lane
// of their own: those of a tenant have one worker, and together they have Limits.SlowLane at most. So a slow cluster
// costs quick neighbours nothing. A reconciliation may run beyond SlowAfter only with a place in that lane, and until
// Limits.Deadline at most. The context that Begin returns ends it, with an OverdueError as its cause. Quick
// reconciliations return the cluster to the normal lane: one after the first time, twice as many after each relapse.
// After an hour without a slow reconciliation, the count starts again.
//
// So no more than SlowLane reconciliations are older than SlowAfter, except for the moment that they need to end.
//
// # As in other work queues
//
// One worker only works on an object; if it is added meanwhile, it is worked on again after that. An object waits
// once, for the earliest requested time. Client-go's queue keeps the sets of ready objects and objects in work, with
// its metrics; this package decides which object is next. There are no priorities: clusters take turns instead.
//
// Memory is bounded by the objects that wait, and by the clusters that have some or were slow in the last hour.
package fairqueue
