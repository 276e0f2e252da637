package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/singleflight"

	"github.com/trellis-addons/trellis/pkg/base/tracing"
	"github.com/trellis-addons/trellis/pkg/fetch"
)

// Store is a fetch.Store in a folder. Jobs start as needed; Close ends them.
type Store struct {
	options Options
	disk    *disk
	ctx     context.Context
	cancel  context.CancelFunc
	jobs    sync.WaitGroup
	tracer  atomic.Pointer[tracing.Tracer]
	flights singleflight.Group

	mu      sync.Mutex
	closed  bool
	entries map[entryKey]*entry
	digests map[flight]string // content of known revisions
	queue   []*entry
	running int
	// hostJobs and ownerJobs count the jobs that run.
	hostJobs, ownerJobs map[string]int
	timer               *time.Timer
	stats               Stats
}

var _ fetch.Store = (*Store)(nil)

// New opens the folder with its earlier content.
func New(options Options) (*Store, error) {
	options, err := options.complete()
	if err != nil {
		return nil, err
	}
	disk, err := openDisk(options)
	if err != nil {
		return nil, fmt.Errorf("open content store: %w", err)
	}
	options.Metrics.resized(disk.size())
	ctx, cancel := context.WithCancel(context.Background())
	return &Store{
		options: options, disk: disk, ctx: ctx, cancel: cancel,
		entries: map[entryKey]*entry{}, digests: map[flight]string{},
		hostJobs: map[string]int{}, ownerJobs: map[string]int{},
	}, nil
}

// Start closes the store at the end of a manager. Its jobs use the context's tracer.
func (s *Store) Start(ctx context.Context) error {
	s.tracer.Store(tracing.From(ctx))
	<-ctx.Done()
	return s.Close()
}

// NeedLeaderElection is false: waiting replicas use a store, too.
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
	s.disk.removals.Wait()
	return s.disk.writeIndex()
}

// Stats returns the counts since the start.
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
	if wake == nil { // it subscribes to nothing, and ends no subscription of its name
		subscriber = ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fetch.Snapshot{}, errClosed
	}
	now := time.Now()
	entry := s.entry(reference, subscriber, now)
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
	entry := s.entry(reference, "", now)
	entry.asked, entry.due, entry.must = now, now, true
	entry.again = entry.running
	entry.failures = 0
	s.schedule(now)
}

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

// mayServeOld: content stays usable if a host is down, but not if it refuses.
func mayServeOld(err error) bool {
	_, missing := errors.AsType[*fetch.NotFoundError](err)
	_, refused := errors.AsType[*fetch.RefusedError](err)
	_, unauthorized := errors.AsType[*fetch.UnauthorizedError](err)
	return !missing && !refused && !unauthorized
}

func (s *Store) entry(reference fetch.Reference, subscriber string, now time.Time) *entry {
	key := entryKey{s.options.Kinds.Key(reference), reference.Owner}
	if found, ok := s.entries[key]; ok {
		return found
	}
	s.leave(subscriber)
	made := &entry{key: key, reference: reference, host: reference.Location.Host(), due: now, asked: now, waiters: map[string]waiter{}}
	if s.disk.index.isPrepared(reference.Credentials) {
		s.recall(made)
	} else {
		made.recalls = true // by a job: the name of the record takes time
	}
	s.entries[key] = made
	return made
}

// leave removes a subscriber from other entries, and removes entries without subscribers: a client that edits an
// object in a loop would otherwise fill the store with them, and each would be checked for an hour.
func (s *Store) leave(subscriber string) {
	for key, left := range s.entries {
		if _, waits := left.waiters[subscriber]; !waits {
			continue
		}
		if delete(left.waiters, subscriber); len(left.waiters) > 0 {
			continue
		}
		if left.asked = (time.Time{}); !left.running { // otherwise it is removed after its check
			delete(s.entries, key)
			s.queue = slices.DeleteFunc(s.queue, func(queued *entry) bool { return queued == left })
		}
	}
}

func (s *Store) recall(entry *entry) {
	entry.recalls = false
	record, ok := s.disk.record(entry.reference)
	if !ok {
		return
	}
	entry.revision = fetch.Revision{Name: record.Revision, Digest: record.RevisionDigest}
	entry.digest, entry.checked = record.Digest, record.Checked
	entry.due = entry.checked.Add(cmp.Or(entry.reference.Interval, s.options.Interval))
	s.digests[s.options.Kinds.RevisionKey(entry.reference, entry.revision)] = entry.digest
}

// served is the reference at its mirror, if there is one.
func (s *Store) served(reference fetch.Reference) (fetch.Reference, error) {
	reference = s.options.Mirrors.Reference(reference)
	_, err := s.options.Kinds.Source(reference)
	return reference, err
}

// Options of a Store. Folder is required; zero values mean the defaults.
type Options struct {
	// Folder belongs only to this process.
	Folder string
	// Kinds get content. A reference of another kind is refused.
	Kinds fetch.Kinds
	// Mirrors replace references (--source-mirror), as in the sources' Network.
	Mirrors fetch.Mirrors
	// Metrics may be nil.
	Metrics *Metrics
	// Interval between two checks of a reference (--source-interval), ± 10 %. Default 5 min.
	Interval time.Duration
	// FirstPause follows a failed check; it doubles up to LastPause. Defaults 1 s and 5 min.
	FirstPause, LastPause time.Duration
	// Jobs is the maximum number of concurrent checks and fetches, HostJobs that per host; one owner has at most all
	// but one. Defaults 8 and 4.
	Jobs, HostJobs int
	// MaxBytes bounds the space that the store uses on its disk, running fetches included. Default 4 GiB.
	MaxBytes int64
	// Keeps selects the files that are used; others are not stored. Nil: all are.
	Keeps func(name string) bool
}

// rememberedFor is the time for which callers are woken, and unused references checked.
const rememberedFor = time.Hour

func (o Options) complete() (Options, error) {
	if o.Folder == "" {
		return o, errors.New("a folder to keep content in is required")
	}
	if o.Metrics == nil {
		o.Metrics = NewMetrics(prometheus.NewRegistry())
	}
	defaultTo(&o.Interval, 5*time.Minute)
	defaultTo(&o.FirstPause, time.Second)
	defaultTo(&o.LastPause, 5*time.Minute)
	defaultTo(&o.Jobs, 8)
	defaultTo(&o.HostJobs, 4)
	defaultTo(&o.MaxBytes, 4<<30)
	return o, nil
}

func defaultTo[T int | int64 | time.Duration](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}

// Stats are counts since the start.
type Stats struct {
	// Resolutions and Fetches are calls of sources, Failures those that failed.
	Resolutions, Fetches, Failures int
	// Hits is the number of snapshots that Get returned.
	Hits int
	// Bytes is the unpacked size of fetched content.
	Bytes int64
}
