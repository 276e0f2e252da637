// Package fence keeps a manager that lost its lease from writing.
//
// A leader that was stopped, or cut off, does not know that its lease ended and that another one leads. Its reconciliations continue at
// any point, with a call that is about to be sent, or half sent. So the lease is checked at the point at which bytes leave the process.
// It holds until its duration, less a margin, after the moment before the last successful renewal was sent. Another process can lead only
// later than that, since it counts from when it sees that renewal. Two clocks count, the monotonic one and the wall clock, since either
// may stop while the process or its machine is stopped. The later one is used.
//
// A fallen fence stays fallen, and the process ends: it can't know what it missed. Before any process led, the fence refuses nothing; a
// replica that waits to lead starts no controller. Without leader election the fence never falls.
//
// A process whose wall clock is more than ten minutes ahead of its API server's does not lead: soak times, timeouts and deadlines of
// removals count from stored times, and would end early. A clock that is put forward while a process leads makes the fence fall, so that
// the process starts again and does not lead until the clock is right.
//
// Three points check it. Transport refuses calls that write, with an error that gives the reason. Dial and Conn refuse further bytes on a
// connection, so that a call that was begun before is not completed. Lock keeps the election itself from releasing a lease that another
// process has by now. The election's client must not be behind the fence.
//
// Between the last check and the system call that follows it, a write can still be sent. No check inside a process can close that gap.
// Only the API server could, by refusing.
//
//rights:master-platform,seed-platform create leases.coordination.k8s.io -- RBAC can't bind a creation to a name
//rights:master-platform,seed-platform get,update leases.coordination.k8s.io names={lease} -- election of the leader
//rights:master-platform,seed-platform create events -- events about the leader
package fence
