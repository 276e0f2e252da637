package survey

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
)

// Drift is one object that differs from the applied one.
type Drift struct {
	Key    ownership.Key
	Reason string
	// Fields are the first lost ones.
	Fields []string
	// WrittenAt is when our manager last wrote a DriftNewer object (ownership.Entry).
	WrittenAt int64
}

const (
	// DriftMissing: no object with our label is found.
	DriftMissing = "Missing"
	// DriftReplaced: another object has the name.
	DriftReplaced = "Replaced"
	// DriftFieldsLost: others changed or removed our fields.
	DriftFieldsLost = "FieldsLost"
	// DriftOlder: our manager last wrote the object before the recorded time: the user cluster was restored from then.
	// Values may differ even if no field does.
	DriftOlder = "Older"
	// DriftNewer: our manager wrote the object after the recorded time. The record was restored, or the record of a
	// repair was not saved.
	DriftNewer = "Newer"
	// DriftAbandoned: the sibling that owned it no longer has it. No survey finds that.
	DriftAbandoned = "Left"
)

// Survey finds drift with one metadata list for each kind and round, and healthy workloads with one list for each of
// their kinds. All installations of a cluster share it; many goroutines may use it.
type Survey struct {
	interval time.Duration
	now      func() time.Time

	lock        sync.Mutex
	round       *round
	healthyList map[schema.GroupResource]*healthyList
}

// New makes the survey of a cluster. A round lasts the interval, with up to a tenth of jitter.
func New(interval time.Duration, now func() time.Time) *Survey {
	return &Survey{interval: interval, now: now, healthyList: map[schema.GroupResource]*healthyList{}}
}

// Due is the rest of the present round: until then, nothing new is found. 0 if there is none.
func (s *Survey) Due() time.Duration {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.round == nil {
		return 0
	}
	return max(0, s.round.ends.Sub(s.now()))
}

func (s *Survey) current(target calls.Target) *round {
	s.lock.Lock()
	defer s.lock.Unlock()
	if now := s.now(); s.round == nil || !now.Before(s.round.ends) {
		s.round = &round{
			ends:     now.Add(wait.Jitter(s.interval, 0.1)),
			kinds:    &calls.Kinds{Mapper: target.Mapper},
			listings: map[schema.GroupResource]*listing{},
		}
		s.round.kept.free.Store(maxKept)
		s.round.whole.free.Store(maxKeptFields)
	}
	return s.round
}

// Drifted returns the objects that differ from the applied ones. Objects of an unserved kind are missing, unless it
// is a removed kind of Kubernetes itself. A kind that the API server can't answer for is no drift. Drift in an
// earlier list of the round is confirmed by a read.
func (s *Survey) Drifted(ctx context.Context, target calls.Target, owner ownership.Owner, inventory ownership.Inventory) ([]Drift, error) {
	compared := &comparison{target: target, owner: owner, round: s.current(target), now: s.now()}
	kinds := grouped(inventory, func(entry ownership.Entry) (schema.GroupKind, bool) { return entry.GroupKind(), entry.UID != "" })
	if err := calls.Each(ctx, kinds, compared.compareKind); err != nil {
		return nil, err
	}
	slices.SortFunc(compared.found, func(a, b Drift) int { return strings.Compare(a.Key.String(), b.Key.String()) })
	return compared.found, nil
}

// SecretVersion is the resource version of a Secret with our label in the round's list, or "".
func (s *Survey) SecretVersion(ctx context.Context, target calls.Target, namespace, name string) (string, error) {
	round := s.current(target)
	where, served, err := round.kinds.Find(corev1.SchemeGroupVersion.WithKind("Secret"))
	if err != nil || !served {
		return "", err
	}
	seen, _, err := round.list(ctx, target, where)
	if err != nil {
		return "", fmt.Errorf("listing the Secrets of add-ons: %w", err)
	}
	return seen[types.NamespacedName{Namespace: namespace, Name: name}].version, nil
}

type comparison struct {
	target calls.Target
	owner  ownership.Owner
	round  *round
	now    time.Time

	lock  sync.Mutex
	found []Drift
}

func (l *comparison) compareKind(ctx context.Context, entries batch) error {
	all, err := l.list(ctx, entries[0])
	if err != nil || all.unknown {
		return err
	}
	return calls.Each(ctx, entries, func(ctx context.Context, entry ownership.Entry) error {
		seen, found := all.objects[types.NamespacedName{Namespace: entry.Namespace, Name: entry.Name}]
		drift := l.compare(entry, seen, found)
		if drift != nil && seen.sum != nil || !all.fresh && (drift != nil || seen.deleting) {
			again, err := l.readAgain(ctx, all.where, entry)
			if err != nil {
				return err
			}
			drift = again
		}
		if drift == nil {
			return nil
		}
		l.lock.Lock()
		defer l.lock.Unlock()
		l.found = append(l.found, *drift)
		return nil
	})
}

func (l *comparison) readAgain(ctx context.Context, where calls.Resource, entry ownership.Entry) (*Drift, error) {
	live, err := calls.ClientOf(l.target, where, entry.Namespace).Read(ctx, entry.Key)
	if err != nil {
		return nil, err
	}
	if live == nil {
		return l.compare(entry, observation{}, false), nil
	}
	seen, err := observe(live)
	if err != nil {
		return nil, err
	}
	return l.compare(entry, seen, true), nil
}

// compare returns the drift of one object, if any. An object that is being deleted has none yet. A Job that ended has none once it
// is deleted, even if another one has its name.
func (l *comparison) compare(entry ownership.Entry, seen observation, found bool) *Drift {
	switch {
	case entry.Finished && (!found || seen.uid != entry.UID), seen.deleting:
		return nil
	case !found:
		return &Drift{Key: entry.Key, Reason: DriftMissing}
	case seen.uid != entry.UID:
		return &Drift{Key: entry.Key, Reason: DriftReplaced}
	case seen.owner != l.owner.ID():
		return &Drift{Key: entry.Key, Reason: DriftFieldsLost, Fields: []string{".metadata.labels." + kubermaticv1.LabelInstallation}}
	}
	if lost := seen.lost(entry); len(lost) > 0 {
		return &Drift{Key: entry.Key, Reason: DriftFieldsLost, Fields: lost}
	}
	switch {
	case entry.WrittenAt == 0, seen.writtenAt == entry.WrittenAt:
		return nil
	case seen.writtenAt < entry.WrittenAt:
		return &Drift{Key: entry.Key, Reason: DriftOlder}
	}
	return &Drift{Key: entry.Key, Reason: DriftNewer, WrittenAt: seen.writtenAt}
}

// resetInterval is the shortest time between two resets of the mapper in a round.
const resetInterval = 5 * time.Second

func (r *round) resetMapper(mapper meta.ResettableRESTMapper, now time.Time) {
	r.lock.Lock()
	defer r.lock.Unlock()
	if now.Sub(r.resetAt) >= resetInterval {
		mapper.Reset()
		r.resetAt = now
	}
}

type listed struct {
	where   calls.Resource
	objects map[types.NamespacedName]observation
	// fresh: this call listed them. unknown: the API server can't answer for them.
	fresh, unknown bool
}

// list returns the objects of an entry's kind; none if no version of a custom kind is served.
func (l *comparison) list(ctx context.Context, entry ownership.Entry) (listed, error) {
	var asked calls.Resource
	for range 2 { // before and after a reset of the mapper
		where, served, err := l.round.kinds.Known(entry.Key, entry.Version)
		if err != nil {
			return listed{}, fmt.Errorf("looking up the kind of %q: %w", entry.Key, err)
		}
		if served && where != asked {
			found, err := l.listAt(ctx, entry, where)
			if !calls.IsUnserved(err) {
				return found, err
			}
			asked = where
		}
		l.round.resetMapper(l.target.Mapper, l.now)
	}
	if !calls.IsCustom(entry.GroupKind()) {
		return listed{unknown: true}, nil // a kind that Kubernetes removed is never served again
	}
	unknown, err := l.target.IsUnknown(ctx, entry)
	return listed{fresh: true, unknown: unknown}, err
}

func (l *comparison) listAt(ctx context.Context, entry ownership.Entry, where calls.Resource) (listed, error) {
	seen, fresh, err := l.round.list(ctx, l.target, where)
	if calls.IsKindTrouble(entry.GroupKind(), err) {
		return listed{unknown: true}, nil
	}
	if err != nil {
		return listed{}, fmt.Errorf("listing the %s objects of add-ons: %w", entry.Kind, err)
	}
	return listed{where: where, objects: seen, fresh: fresh}, nil
}
