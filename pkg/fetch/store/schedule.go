package store

import (
	"errors"
	"time"

	"github.com/trellis-addons/trellis/pkg/fetch"
)

// schedule queues due entries, starts jobs, and sets the timer for the next one. It is called after
// each change, with the lock held.
func (s *Store) schedule(now time.Time) {
	if s.closed {
		return
	}
	var next time.Time
	for key, entry := range s.entries {
		if entry.isDue(now) {
			entry.queued = true
			s.queue = append(s.queue, entry)
		}
		idle := !entry.queued && !entry.running
		if idle && now.Sub(entry.asked) > rememberedFor {
			delete(s.entries, key)
			continue
		}
		if idle && (next.IsZero() || entry.due.Before(next)) {
			next = entry.due
		}
	}
	s.startJobs()
	s.wakeAt(now, next)
}

func (s *Store) wakeAt(now, next time.Time) {
	if s.timer != nil {
		s.timer.Stop()
	}
	if next.IsZero() {
		return
	}
	s.timer = time.AfterFunc(max(next.Sub(now), time.Millisecond), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.schedule(time.Now())
	})
}

func (s *Store) startJobs() {
	waiting := s.queue[:0]
	for _, entry := range s.queue {
		if s.running >= s.options.Jobs || s.hostJobs[entry.host] >= s.options.HostJobs {
			waiting = append(waiting, entry)
			continue
		}
		entry.queued, entry.running = false, true
		s.running++
		s.hostJobs[entry.host]++
		s.jobs.Go(func() { s.work(entry) })
	}
	clear(s.queue[len(waiting):])
	s.queue = waiting
}

func (s *Store) finish(entry *entry) {
	entry.running = false
	s.running--
	if s.hostJobs[entry.host]--; s.hostJobs[entry.host] == 0 {
		delete(s.hostJobs, entry.host)
	}
}

func retryAfter(err error) time.Duration {
	if unavailable, ok := errors.AsType[*fetch.UnavailableError](err); ok {
		return unavailable.RetryAfter
	}
	return 0
}
