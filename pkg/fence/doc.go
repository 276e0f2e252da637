// Package fence keeps a manager that leads no more from writing.
//
// A leader that was stopped, or was away for another reason, does not know that its lease ended and that another one leads.
// Its passes go on where they were: with a call that is about to be sent, or half sent. So the lease is looked at where bytes
// leave the process. It holds until its duration, less a margin, after the moment before the last renewal that succeeded was
// sent: another process can lead from a later moment only, since it counts the duration from when it sees that renewal. Both
// clocks count, the one that goes on by itself and the one of the day, since either may stand still while the process or its
// machine does, and the later one is believed.
//
// A fence that fell stays down, and the process ends: it can't know what it missed. While nobody has led yet, the fence
// does not hinder; what waits to lead starts no controller. Without leader election it never falls.
//
// It is looked at in three places: Transport refuses calls that write, with an error that says why; Dial refuses to put
// further bytes on a connection, so that a call that was begun before is not ended after; Lock keeps the election itself from
// giving up a lease that is somebody else's by now. The election's client must not be behind the fence.
//
// What is left is the time between the last look and the system call that follows it. No look from inside of a process can
// close that: only the API server's refusal could.
package fence
