package sets_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/standins"
	"github.com/trellis-addons/trellis/test/world"
)

// stored are the moves of each installation as the API server has them: a request that had no answer may
// have arrived.
type stored struct {
	mutex sync.Mutex
	moves map[string]map[time.Time]bool
}

// follow the installations of a seed from now on, until the end of the test. An API server ends watches now and then: the next one begins
// with all that is there.
func follow(t testing.TB, config *rest.Config) *stored {
	t.Helper()
	with, s := world.Client(t, config), &stored{moves: map[string]map[time.Time]bool{}}
	begin := func() watch.Interface {
		made, err := with.Watch(t.Context(), &v1.AddonInstallationList{})
		if err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
		return made
	}
	go func(current watch.Interface) {
		for ; current != nil; current = begin() {
			for event := range current.ResultChan() {
				if found, ok := event.Object.(*v1.AddonInstallation); ok {
					s.add(found)
				}
			}
			current.Stop()
			if t.Context().Err() != nil {
				return
			}
		}
	}(begin())
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

// await waits until the watch, which lags behind on a busy machine, has seen each of the clusters' items move.
func (s *stored) await(t testing.TB, clusters, items []string, begin time.Time) {
	t.Helper()
	expect.Eventually(t, expect.Patience, func() error {
		missing := 0
		for _, cluster := range clusters {
			for _, item := range items {
				if s.since(cluster+"/"+item, begin) == 0 {
					missing++
				}
			}
		}
		if missing > 0 {
			return fmt.Errorf("%d installations were not seen to move", missing)
		}
		return nil
	})
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
