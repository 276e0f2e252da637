package sets_test

import (
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/standins"
	"github.com/trellis-addons/trellis/test/world"
)

// stored are the moves of each installation as the API server has them: a request that it did not answer in time was none, and is
// rightly made again.
type stored struct {
	mutex sync.Mutex
	moves map[string]map[time.Time]bool
}

// follow the installations of a seed from now on, until the end of the test.
func follow(t testing.TB, config *rest.Config) *stored {
	t.Helper()
	watch, err := world.Client(t, config).Watch(t.Context(), &v1.AddonInstallationList{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(watch.Stop)
	s := &stored{moves: map[string]map[time.Time]bool{}}
	go func() {
		for event := range watch.ResultChan() {
			if found, ok := event.Object.(*v1.AddonInstallation); ok {
				s.add(found)
			}
		}
	}()
	return s
}

func (s *stored) add(found *v1.AddonInstallation) {
	at, err := time.Parse(time.RFC3339Nano, found.Annotations[v1.AnnotationMoved])
	if err != nil {
		return
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	name := standins.ClusterOf(found.Namespace) + "/" + found.Name
	if s.moves[name] == nil {
		s.moves[name] = map[time.Time]bool{}
	}
	s.moves[name][at.UTC()] = true
}

// since counts the moves of an installation, "<cluster>/<installation>".
func (s *stored) since(name string, begin time.Time) int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	count := 0
	for at := range s.moves[name] {
		if !at.Before(begin) {
			count++
		}
	}
	return count
}
