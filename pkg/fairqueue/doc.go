// Package fairqueue is the work queue of a controller whose objects belong to clusters that others
// control.
//
// # Fair between clusters
//
// Clusters that have something ready take turns, one object each; inside a cluster, objects go in
// the order in which they became ready. A cluster holds at most its share of the workers at a time,
// also while others are idle, so no cluster alone takes all of them. However much one cluster asks
// for, it makes another one wait for one turn at most.
//
// # Slow clusters
//
// A pass that takes longer than Limits.SlowAfter makes its cluster a slow one. Slow clusters take
// turns among themselves, in a lane of their own: each holds one worker, and together they hold
// Limits.SlowLane at most. A pass goes on beyond SlowAfter only with a place in that lane, and ends
// at Limits.Deadline in any case; without a place it ends at SlowAfter. Ending is by the context
// that Begin gives, whose cause is an OverdueError. Quick passes take it out of the lane: one after
// the first time, twice as many after each relapse, so that a cluster gains nothing by being slow
// now and then. After an hour without a slow pass nothing is held against it.
//
// So at any time no more than SlowLane passes are older than SlowAfter, but for the moment that
// they need to end.
//
// # What it keeps of work queues
//
// An object is in work at one worker only; one that is added meanwhile is taken again after that.
// An object waits once, for the earliest of the times that it was asked for, and not at all once it
// was added without a wait. Client-go's queue keeps the sets of what is ready and in work, with its
// metrics; this package decides what comes next. Priorities are not known: the turns of clusters do
// what controller-runtime has them for.
//
// Memory is bounded by the objects that wait, and by the clusters that have some or were slow in
// the last hour.
package fairqueue
