package store

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/trellis-addons/trellis/pkg/base/backoff"
	"github.com/trellis-addons/trellis/pkg/fetch"
)

// jobLimit bounds a job; sources have shorter deadlines.
const jobLimit = 5 * time.Minute

type result struct {
	revision fetch.Revision
	digest   string
	err      error
}

func (s *Store) work(entry *entry) {
	ctx, cancel := context.WithTimeout(s.tracer.Load().Into(s.ctx), jobLimit)
	defer cancel()
	must, wakes, recalled := s.begin(entry)
	if recalled {
		for _, wake := range wakes {
			wake()
		}
		return
	}
	found := s.resolveAndFetch(ctx, entry)
	if s.ctx.Err() != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.finish(entry)
		return
	}
	for _, wake := range s.conclude(entry, found, must) {
		wake()
	}
}

// begin reports whether the check was requested. The record may make it unnecessary.
func (s *Store) begin(entry *entry) (must bool, wakes []func(), recalled bool) {
	if entry.recalls { // only this job writes it
		_ = s.disk.index.prepare(entry.reference.Credentials) // without it the record is not found
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	entry.again = false // this check answers all requests until now
	if !entry.recalls {
		return entry.must, nil, false
	}
	s.recall(entry)
	now := time.Now()
	if entry.must || !entry.fresh(now, entry.interval(now, s.options.Interval)) || !s.disk.has(entry.digest) {
		return entry.must, nil, false
	}
	s.finish(entry)
	s.schedule(now)
	return false, entry.toWake(now), true
}

func (s *Store) conclude(entry *entry, found result, must bool) []func() {
	if found.err == nil {
		s.disk.remember(entry.reference, record{
			Revision: found.revision.Name, RevisionDigest: found.revision.Digest, Digest: found.digest, Checked: time.Now(),
		})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	changed := entry.update(found, now) || entry.awaited
	if entry.must = entry.must && !must; !entry.again {
		entry.due = now.Add(s.untilNext(entry))
	} // otherwise a check was requested during this one, and is due
	s.finish(entry)
	s.schedule(now)
	if !changed || entry.must {
		return nil
	}
	return entry.toWake(now)
}

// jitter is the share by which waits differ.
const jitter = 0.1

func (s *Store) untilNext(entry *entry) time.Duration {
	switch {
	case entry.err != nil && mayServeOld(entry.err):
		pause := backoff.After(entry.failures, s.options.FirstPause, s.options.LastPause)
		return wait.Jitter(max(pause, retryAfter(entry.err)), jitter) // never before the time that the server set
	case entry.err == nil && entry.fixed():
		return rememberedFor
	}
	return backoff.Around(entry.interval(time.Now(), s.options.Interval), jitter)
}

// update applies a result, and reports whether the result of Get changes. A failure keeps the last content.
func (e *entry) update(found result, now time.Time) bool {
	failed := e.err != nil
	e.err = found.err
	if found.err != nil {
		e.failures++
		return !failed
	}
	changed := failed || e.digest != found.digest || e.revision.Name != found.revision.Name
	e.failures, e.checked, e.confirmed = 0, now, true
	e.revision, e.digest = found.revision, found.digest
	return changed
}

func (s *Store) resolveAndFetch(ctx context.Context, entry *entry) (found result) {
	ctx, span := s.trace(ctx, entry)
	defer func() {
		// Decoders read foreign bytes here: a panic is a failed check, not the end of the process.
		if recover() != nil {
			found.err = errDecoder
		}
		if found.err != nil {
			s.mu.Lock()
			s.stats.Failures++
			s.mu.Unlock()
			s.options.Metrics.failed(entry.host, found.err)
		}
		endTrace(span, found.err)
	}()
	var source fetch.Source
	if source, found.err = s.options.Kinds.Source(entry.reference); found.err != nil {
		return found
	}
	s.count(func(stats *Stats) { stats.Resolutions++ })
	s.options.Metrics.resolved(entry.host)
	found.revision, found.err = source.Resolve(ctx, entry.reference)
	if found.err != nil {
		return found
	}
	if s.isKnown(entry, found.revision) {
		found.digest = entry.digest
		return found
	}
	found.digest, found.err = s.content(ctx, source, entry.reference, found.revision)
	return found
}

// isKnown reports that a check has the same result as the previous one, and that no caller waits: content that was
// removed for space is fetched again when it is requested.
func (s *Store) isKnown(entry *entry, revision fetch.Revision) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !entry.awaited && !entry.must && entry.digest != "" && entry.revision == revision
}

var errDecoder = errors.New("a decoder failed on the source's answer")

func (s *Store) count(add func(*Stats)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	add(&s.stats)
}

// content makes sure that a revision's content is on disk. Concurrent callers of one owner share the result.
func (s *Store) content(ctx context.Context, source fetch.Source, reference fetch.Reference, revision fetch.Revision) (string, error) {
	key := s.options.Kinds.RevisionKey(reference, revision)
	digest, err, _ := s.flights.Do(string(key[:])+reference.Owner, func() (any, error) {
		s.mu.Lock()
		known, ok := s.digests[key]
		s.mu.Unlock()
		if ok && s.disk.has(known) {
			return known, nil
		}
		brought, err := s.fetch(ctx, source, reference, revision)
		if err != nil {
			return nil, err
		}
		// Set before the flight ends, or a caller right after it would fetch again.
		s.mu.Lock()
		defer s.mu.Unlock()
		s.digests[key] = brought
		s.forget()
		return brought, nil
	})
	if err != nil {
		return "", err
	}
	return digest.(string), nil
}

// digestLimit is the number of known revisions at which those without content are removed, and then others until half
// of that number is left.
const digestLimit = 10_000

func (s *Store) forget() {
	if len(s.digests) <= digestLimit {
		return
	}
	for key, digest := range s.digests {
		if !s.disk.has(digest) {
			delete(s.digests, key)
		}
	}
	for key := range s.digests {
		if len(s.digests) <= digestLimit/2 { // so that the next removal, which reads all of them, is far away
			return
		}
		delete(s.digests, key)
	}
}

func (s *Store) fetch(ctx context.Context, source fetch.Source, reference fetch.Reference, revision fetch.Revision) (string, error) {
	host := reference.Location.Host()
	s.count(func(stats *Stats) { stats.Fetches++ })
	s.options.Metrics.fetching(host)
	digest, size, err := s.disk.bring(ctx, reference.Owner, func(ctx context.Context, folder string) (string, error) {
		return source.Fetch(ctx, reference, revision, folder)
	})
	if err != nil {
		return "", s.disk.full(err, time.Now())
	}
	s.count(func(stats *Stats) { stats.Bytes += size })
	s.options.Metrics.fetched(host, size)
	s.options.Metrics.resized(s.disk.size())
	return digest, nil
}

// schedule queues due entries, starts jobs, and sets the timer for the next one. It is called after each change, with
// the lock held.
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
	for s.running < s.options.Jobs {
		at := s.nextJob()
		if at < 0 {
			return
		}
		entry := s.queue[at]
		s.queue = slices.Delete(s.queue, at, at+1)
		entry.queued, entry.running = false, true
		s.running++
		s.hostJobs[entry.host]++
		s.ownerJobs[entry.reference.Owner]++
		s.jobs.Go(func() { s.work(entry) })
	}
}

// nextJob is the index in the queue of the first entry whose owner has the fewest jobs, of those whose host has a
// free slot; -1 for none. One job is reserved for an owner that has none: slow sources of one owner never take all.
func (s *Store) nextJob() int {
	next, fewest := -1, max(1, s.options.Jobs-1)
	for at, entry := range s.queue {
		if jobs := s.ownerJobs[entry.reference.Owner]; jobs < fewest && s.hostJobs[entry.host] < s.options.HostJobs {
			next, fewest = at, jobs
		}
	}
	return next
}

func (s *Store) finish(entry *entry) {
	entry.running = false
	s.running--
	less(s.hostJobs, entry.host)
	less(s.ownerJobs, entry.reference.Owner)
}

func less(jobs map[string]int, of string) {
	if jobs[of]--; jobs[of] == 0 {
		delete(jobs, of)
	}
}

func retryAfter(err error) time.Duration {
	if unavailable, ok := errors.AsType[*fetch.UnavailableError](err); ok {
		return unavailable.RetryAfter
	}
	return 0
}
