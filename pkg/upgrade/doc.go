// Package upgrade decides how long an upgrade of a cluster waits for its add-ons. It is pure: what
// is seen of the cluster and its gates comes in, with the clock; which annotations are to be on it
// comes out, and the condition that says why.
//
// Gates are the installations that an upgrade waits for. Two annotations hold it: the hook holds the
// control plane, workers' hold the machines. Decide goes by what is there, so that it may begin
// anywhere, after a restart too:
//
//	Rest                nothing is pending: the hook is on
//	BeforeControlPlane  the hook is on and another version is wanted: until each gate is at a version that fits both, and none breaks
//	ControlPlane        it rolls: nothing is decided, workers are held
//	BeforeWorkers       it is where it was asked to be: until every gate is right there
//
// The hook is never put on while an upgrade is pending, so what somebody took off stays off for that
// upgrade. It goes in one write with the hold on workers. Each of the two waits ends at the timeout,
// which counts from the transition of the condition; all state is on objects (ADR 92).
package upgrade
