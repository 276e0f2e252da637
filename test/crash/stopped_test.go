package crash_test

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/gate"
	"github.com/trellis-addons/trellis/test/long"
)

// places is at how many more writes of a rollout a leader is stopped.
var places = flag.Int("places", 0, "at how many more writes of a rollout, taken by chance, a leader is stopped for longer than its lease")

const (
	// latestPlace is fewer writes than any installation of the add-on takes: a leader is stopped at each write up to it.
	latestPlace = 10
	// shortPlaces are so many of them with -short.
	shortPlaces = 2
)

// placesOfStops are the writes at which leaders are stopped.
func placesOfStops(t *testing.T) (all []int) {
	t.Helper()
	if testing.Short() {
		begin := int(long.Rotation(t) % latestPlace)
		for i := range shortPlaces {
			all = append(all, 1+(begin+i*latestPlace/shortPlaces)%latestPlace)
		}
		return all
	}
	for place := range latestPlace {
		all = append(all, 1+place)
	}
	for range *places {
		all = append(all, 1+rand.IntN(latestPlace)) //nolint:gosec // no secret depends on it
	}
	return all
}

// RS40: A leader that was stopped for longer than its lease writes nothing more. The leader is
// stopped in the middle of a rollout, and goes on when another one has led and is done. Red when
// Holds of pkg/base/fence is always nil: what the old leader was about to send is sent.
func TestALeaderThatWasStoppedWritesNothingMore(t *testing.T) {
	p := newStocked(t)
	for _, place := range placesOfStops(t) {
		t.Run(fmt.Sprintf("at write %d", place), func(t *testing.T) {
			t.Parallel()
			stopAt(t, p, place)
		})
	}
}

// stopAt has two processes compete for the installation of one subject, and stops the one that leads at its nth write.
func stopAt(t *testing.T, p *platform, place int) {
	t.Helper()
	s := p.newSubject(t, fmt.Sprintf("stopped-%d", place))
	first, second := s.name+"-first", s.name+"-second"
	stopped := &stopper{place: place, reached: make(chan struct{})}
	p.seedGate.Watch(first, stopped.guard("seed"))
	p.userGate.Watch(s.name, stopped.guard("user"))
	old := s.compete(t, first)
	await(t, func() error { return errors.Join(old.Failure(), s.isLed(t)) })
	stopped.setProcess(old)
	next := s.compete(t, second)
	s.install(t, "probe", "1.0.0")
	await(t, func() error { return errors.Join(old.Failure(), next.Failure(), stopped.isReached()) })

	await(t, func() error { return errors.Join(next.Failure(), s.unsettled(t, "1.0.0")) })
	stopped.goOn(t)
	await(t, func() error {
		if old.Failure() == nil {
			return errors.New("the old leader goes on")
		}
		return next.Failure()
	})
	if late := stopped.lateCalls(); len(late) > 0 {
		t.Errorf("after another one had led, the old leader sent:\n%s", strings.Join(late, "\n"))
	}
	if err := s.unsettled(t, "1.0.0"); err != nil {
		t.Error(err)
	}
}

// compete starts a process that works on the installation while it leads.
func (s *subject) compete(t *testing.T, who string) *fleet.Process {
	t.Helper()
	config := s.seedGate.Config(who)
	return startController(t, who, assignment{
		Server: config.Host, CA: config.CAData, Token: config.BearerToken, Catalogue: s.catalogue,
		Installations: map[string]string{labelCase: s.name}, Lease: s.name,
	})
}

// isLed is nil once somebody holds the subject's lease.
func (s *subject) isLed(t *testing.T) error {
	t.Helper()
	var lease coordinationv1.Lease
	if err := s.seed.Get(t.Context(), client.ObjectKey{Namespace: s.catalogue, Name: s.name}, &lease); err != nil {
		return err
	}
	if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
		return errors.New("nobody leads")
	}
	return nil
}

// stopper stops a process at one of its writes, and takes down what it sends once it goes on. By then the other process is
// done and rests, so that all that the user cluster gets is the old one's.
type stopper struct {
	place   int
	reached chan struct{}

	mutex   sync.Mutex
	process *fleet.Process
	writes  int
	late    []string
	over    bool
}

func (s *stopper) setProcess(process *fleet.Process) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.process = process
}

func (s *stopper) guard(side string) gate.Guard {
	return gate.Guard{Before: func(call gate.Call) bool {
		s.see(side, call)
		return true
	}}
}

// see looks at a call before the API server gets it. Reads, and what the election says of itself, are nobody's concern.
func (s *stopper) see(side string, call gate.Call) {
	if call.Method == http.MethodGet || strings.HasPrefix(call.Path, "/api/v1/") && strings.HasSuffix(call.Path, "/events") {
		return
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.over {
		s.late = append(s.late, side+" "+call.Method+" "+call.Path)
		return
	}
	if s.process == nil || strings.Contains(call.Path, "/leases") {
		return
	}
	if s.writes++; s.writes == s.place {
		if err := s.process.Signal(syscall.SIGSTOP); err == nil {
			close(s.reached)
		}
	}
}

func (s *stopper) isReached() error {
	select {
	case <-s.reached:
		return nil
	default:
		return fmt.Errorf("write %d was not reached", s.place)
	}
}

// goOn lets the process go on.
func (s *stopper) goOn(t *testing.T) {
	t.Helper()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.over = true
	if err := s.process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
}

func (s *stopper) lateCalls() []string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.late
}
