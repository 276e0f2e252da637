package survey_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/survey"
	"github.com/trellis-addons/trellis/test/hostile"
	"github.com/trellis-addons/trellis/test/lab"
	"github.com/trellis-addons/trellis/test/long"
)

// TestListsOfHostileClustersAreEndedForAllInstallations fails, in the order of the modes, if pages are not counted, if
// tokens may repeat, if kept items are not limited by number, or by size. For all of them: if the next installation of
// the cluster requests the same list again.
func TestListsOfHostileClustersAreEndedForAllInstallations(t *testing.T) {
	long.Heavy(t)
	for mode, dose := range map[string]int{"endless-pages": 0, "same-page": 0, "empty-items": 1 << 20, "long-name": 30 << 20} {
		t.Run(mode, func(t *testing.T) {
			l, server := lab.NewHostile(t)
			l.Namespace()
			inventory := l.Install(l.Prepare(lab.SettingsAndClaims), nil)
			server.SetDose(hostile.ModeNamed(mode), hostile.Dose{Size: dose})
			s := survey.New(lab.Patience, time.Now)
			for range 2 {
				_, err := s.Drifted(t.Context(), l.Target, l.Owner, inventory)
				lab.ExpectMisbehaviour(t, "drift", err)
			}
			if lists := server.Count("requests"); lists > 2*400 {
				t.Errorf("%d pages of two kinds were asked for", lists)
			}
			before := server.Count("requests")
			_, err := s.Drifted(t.Context(), l.Target, ownership.Owner{ClusterUID: "5f3d", Installation: "another"}, inventory)
			lab.ExpectMisbehaviour(t, "drift of another", err)
			if more := server.Count("requests") - before; more > 0 {
				t.Errorf("another installation asked %d times in the same round", more)
			}
			if mode != "long-name" { // the names of other objects are not kept for health
				_, err = survey.Standard{}.Assess(t.Context(), l.Target, l.Owner, inventory)
				lab.ExpectMisbehaviour(t, "health", err)
			}
		})
	}
}

// TestWaitingForAListEndsWithTheContext fails if an installation waits for another one's list after its own context has
// ended.
func TestWaitingForAListEndsWithTheContext(t *testing.T) {
	l, server := lab.NewHostile(t)
	l.Namespace()
	inventory := l.Install(l.Prepare(lab.Settings), nil)
	server.Set(hostile.ModeNamed("slow-pages"))
	s := survey.New(lab.Patience, time.Now)
	first, end := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := s.Drifted(first, l.Target, l.Owner, inventory)
		ended <- err
	}()
	l.Eventually("the first list has begun", func() bool { return server.Count("requests") > 0 })
	second, stop := context.WithCancel(t.Context())
	stop()
	if _, err := s.Drifted(second, l.Target, l.Owner, inventory); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting ended with %v", err)
	}
	end()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the first list ended with %v", err)
	}
}
