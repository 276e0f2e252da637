// Package upgrade decides how long an upgrade of a cluster waits for its add-ons. It is pure: its input is the
// observed state of the cluster and its gates, and the clock; its output is the annotations that the cluster should
// have, and the condition that explains them.
//
// Gates are the installations that an upgrade waits for. Two annotations hold it: the hook holds the control plane,
// the workers' annotation holds the machines. Decide uses only the present state, so it can begin at any point, also
// after a restart:
//
//	Rest                nothing is pending: the hook is on
//	BeforeControlPlane  the hook is on and another version is wanted: until each gate is at a version that fits both, and none breaks
//	ControlPlane        the control plane is upgraded: nothing is decided, workers are held
//	BeforeWorkers       the control plane has the requested version: until every gate is right there
//
// The hook is never added while an upgrade is pending, so an upgrade whose hook a user removed is not held again. One
// write removes the hook and adds the hold on workers. Each of the two waits ends at the timeout, which counts from
// the transition of the condition; all state is on objects (ADR 92).
package upgrade
