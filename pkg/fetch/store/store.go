package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/trellis-addons/trellis/pkg/fetch"
)

// Store is a fetch.Store on a folder. It needs no start: jobs run as they are needed. Close ends them.
type Store struct {
	options Options
	disk    *disk
	ctx     context.Context
	cancel  context.CancelFunc
	jobs    sync.WaitGroup
	flights singleflight.Group

	mu       sync.Mutex
	closed   bool
	entries  map[entryKey]*entry
	digests  map[flight]string // which content a revision turned out to have
	queue    []*entry
	running  int
	hostJobs map[string]int
	timer    *time.Timer
	stats    Stats
}

var _ fetch.Store = (*Store)(nil)

// New opens the folder and what it kept from before.
func New(options Options) (*Store, error) {
	options, err := options.complete()
	if err != nil {
		return nil, err
	}
	disk, err := openDisk(options)
	if err != nil {
		return nil, fmt.Errorf("open content store: %w", err)
	}
	options.Metrics.keeps(disk.size())
	ctx, cancel := context.WithCancel(context.Background())
	return &Store{
		options: options, disk: disk, ctx: ctx, cancel: cancel,
		entries: map[entryKey]*entry{}, digests: map[flight]string{},
		hostJobs: map[string]int{},
	}, nil
}

// Start makes the store a runnable of a manager: it ends with it.
func (s *Store) Start(ctx context.Context) error {
	<-ctx.Done()
	return s.Close()
}

// NeedLeaderElection says no: a store is of use to a manager that waits to lead, too.
func (s *Store) NeedLeaderElection() bool { return false }

// Close ends all jobs, waits for them, and writes the index.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	if s.timer != nil {
		s.timer.Stop()
	}
	s.mu.Unlock()
	s.cancel()
	s.jobs.Wait()
	return s.disk.close()
}

// Stats says what happened since the start.
func (s *Store) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stats
}

// Get implements fetch.Store.
func (s *Store) Get(reference fetch.Reference, subscriber string, wake func()) (fetch.Snapshot, error) {
	reference, err := s.served(reference)
	if err != nil {
		return fetch.Snapshot{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fetch.Snapshot{}, errClosed
	}
	now := time.Now()
	entry := s.entry(reference, now)
	entry.ask(now, subscriber, wake, reference.Interval)
	entry.bringForward(now, entry.interval(now, s.options.Interval))
	snapshot, err := s.answer(entry, now)
	if err == nil {
		s.stats.Hits++
		s.options.Metrics.hit(entry.host)
	} else {
		entry.awaited = true
	}
	s.schedule(now)
	return snapshot, err
}

var errClosed = errors.New("the content store is closed")

// Refresh implements fetch.Store.
func (s *Store) Refresh(reference fetch.Reference) {
	reference, err := s.served(reference)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	now := time.Now()
	entry := s.entry(reference, now)
	entry.asked, entry.due, entry.must = now, now, true
	entry.failures = 0
	s.schedule(now)
}

// answer says what Get says, from what is known.
func (s *Store) answer(entry *entry, now time.Time) (fetch.Snapshot, error) {
	if entry.must {
		return fetch.Snapshot{}, fetch.ErrPending
	}
	if entry.err != nil && !mayServeOld(entry.err) {
		return fetch.Snapshot{}, entry.err
	}
	if entry.err != nil || entry.fresh(now, entry.interval(now, s.options.Interval)) {
		if content, ok := s.disk.open(entry.digest, now); ok {
			return fetch.Snapshot{FS: content, Revision: entry.revision.Name, Digest: entry.digest, Stale: entry.err}, nil
		}
	}
	if entry.err != nil {
		return fetch.Snapshot{}, entry.err
	}
	entry.due = now
	return fetch.Snapshot{}, fetch.ErrPending
}

// mayServeOld: a host that is down takes nothing away; one that says no does.
func mayServeOld(err error) bool {
	var (
		missing      *fetch.NotFoundError
		refused      *fetch.RefusedError
		unauthorized *fetch.UnauthorizedError
	)
	return !errors.As(err, &missing) && !errors.As(err, &refused) && !errors.As(err, &unauthorized)
}

// entry finds or makes the entry of a reference.
func (s *Store) entry(reference fetch.Reference, now time.Time) *entry {
	key := entryKey(s.options.Kinds.Key(reference))
	if found, ok := s.entries[key]; ok {
		return found
	}
	made := &entry{key: key, reference: reference, host: reference.Location.Host(), due: now, asked: now}
	if s.disk.index.isPrepared(reference.Credentials) {
		s.recall(made)
	} else {
		made.recalls = true // by a job: the name of the record takes time
	}
	s.entries[key] = made
	return made
}

// recall takes over what an earlier process knew of a reference.
func (s *Store) recall(entry *entry) {
	entry.recalls = false
	record, ok := s.disk.record(entry.reference)
	if !ok {
		return
	}
	entry.revision = fetch.Revision{Name: record.Revision, Digest: record.RevisionDigest}
	entry.digest, entry.looked = record.Digest, record.Looked
	entry.due = entry.looked.Add(cmp.Or(entry.reference.Interval, s.options.Interval))
	s.digests[s.options.Kinds.RevisionKey(entry.reference, entry.revision)] = entry.digest
}

// served is the reference that is asked: at its mirror, where there is one.
func (s *Store) served(reference fetch.Reference) (fetch.Reference, error) {
	reference = s.options.Mirrors.Reference(reference)
	_, err := s.options.Kinds.Source(reference)
	return reference, err
}
