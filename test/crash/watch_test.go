package crash_test

import (
	"fmt"
	"testing"

	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/gate"
)

// watcher sees every write of a subject's controller, on both sides, and kills the controller at a boundary.
type watcher struct {
	*gate.Killer
	subject *subject
	process *fleet.Process
}

// watch starts the subject's controller under watch. Without doom it is not killed.
func (s *subject) watch(t testing.TB, doom *gate.Boundary) *watcher {
	t.Helper()
	w := &watcher{Killer: gate.NewKiller(doom), subject: s}
	for side, at := range map[string]*gate.Gate{"seed": s.seedGate, "user": s.userGate} {
		at.Watch(s.name, w.Guard(func(call gate.Call) string { return s.write(side, call) }))
	}
	w.process = w.Begin(func() *fleet.Process { return s.controller(t) })
	return w
}

// end kills the controller where it lives, and lets everything pass from then on.
func (w *watcher) end() {
	w.process.Kill()
	w.subject.seedGate.Watch(w.subject.name, gate.Guard{})
	w.subject.userGate.Watch(w.subject.name, gate.Guard{})
}

// write says what a call writes, without the subject's name.
func (s *subject) write(side string, call gate.Call) string {
	return s.anonymous(fmt.Sprintf("%s %s %s", side, call.Method, call.Path))
}
