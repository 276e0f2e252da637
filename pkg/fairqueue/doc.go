// Package fairqueue is the work queue of a controller whose objects belong to clusters that others
// control.
//
// # Fair between clusters
//
// Clusters that have something ready take turns, one object each. Inside a cluster, objects go in
// the order in which they became ready. A cluster has at most its share of the workers at a time,
// also while other workers are idle. So however much one cluster asks for, another one waits for
// one turn at most.
//
// A tenant may have several clusters. Tenants take turns, and inside a tenant its clusters do; the
// share of the workers is the tenant's, whatever number of clusters it has. One cluster among
// several has one worker less than that at most, so that its neighbours need not wait for its
// passes.
//
// # Slow clusters
//
// A pass that takes longer than Limits.SlowAfter makes its cluster slow. Slow clusters take turns
// in a lane of their own: those of a tenant have one worker, and together they have Limits.SlowLane
// at most. So a slow cluster costs neighbours that are quick nothing. A
// pass may run beyond SlowAfter only with a place in that lane, and until Limits.Deadline at most.
// It is ended by the context that Begin gives, whose cause is an OverdueError. Quick passes bring
// the cluster back to the normal lane: one after the first time, twice as many after each relapse.
// After an hour without a slow pass, the count starts again.
//
// So no more than SlowLane passes are older than SlowAfter, but for the moment that they need to
// end.
//
// # As in other work queues
//
// An object is in work at one worker only; one that is added meanwhile is worked on again after
// that. An object waits once, for the earliest time that was asked for. Client-go's queue keeps the
// sets of what is ready and in work, with its metrics; this package decides what comes next. There
// are no priorities: clusters take turns instead.
//
// Memory is bounded by the objects that wait, and by the clusters that have some or were slow in
// the last hour.
package fairqueue
