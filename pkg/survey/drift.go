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
	"github.com/trellis-addons/trellis/pkg/calls"
	"github.com/trellis-addons/trellis/pkg/ownership"
)

// Drift is one object that differs from what was applied.
type Drift struct {
	Key ownership.Key
	// Reason is one of the Drift… constants.
	Reason string
	// Fields are the first few fields that were lost, where Reason is DriftFieldsLost.
	Fields []string
}

// Why an object has drifted.
const (
	// DriftMissing: it is not found under our label.
	DriftMissing = "Missing"
	// DriftReplaced: another object of that name stands in its place.
	DriftReplaced = "Replaced"
	// DriftFieldsLost: somebody changed or removed fields that are ours.
	DriftFieldsLost = "FieldsLost"
	// DriftLeft: the installation that it was shared with does not have it any more. No survey finds that.
	DriftLeft = "Left"
)

// Survey finds drift with one metadata list of our label for each kind and round, shared by all installations of a cluster, and
// with one more for each kind of workload whether they are well. There is one Survey to a cluster, for many goroutines.
type Survey struct {
	interval time.Duration
	now      func() time.Time

	lock  sync.Mutex
	round *round
	well  map[schema.GroupResource]*well
}

// New makes the survey of a cluster. A round lasts the interval, jittered by up to a tenth; now tells the time.
func New(interval time.Duration, now func() time.Time) *Survey {
	return &Survey{interval: interval, now: now, well: map[schema.GroupResource]*well{}}
}

// Due is how long the present round still lasts: asking again before can tell nothing new. It is 0 where there is none.
func (s *Survey) Due() time.Duration {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.round == nil {
		return 0
	}
	return max(0, s.round.ends.Sub(s.now()))
}

// current is the present round, begun if there is none.
func (s *Survey) current(target calls.Target) *round {
	s.lock.Lock()
	defer s.lock.Unlock()
	if now := s.now(); s.round == nil || !now.Before(s.round.ends) {
		s.round = &round{
			ends:     now.Add(wait.Jitter(s.interval, 0.1)),
			kinds:    &calls.Kinds{Mapper: target.Mapper},
			kept:     newAllowance(maxKept),
			whole:    newAllowance(maxKeptFields),
			listings: map[schema.GroupResource]*listing{},
		}
	}
	return s.round
}

// Drifted are the objects of the inventory that differ from what was applied. Those of a kind that is not served any more are
// missing like others that were deleted, unless the kind left Kubernetes itself. A kind that the API server can't answer for is
// no drift. What looks like drift in a list made earlier in the round is read once more.
func (s *Survey) Drifted(ctx context.Context, target calls.Target, owner ownership.Owner, inventory ownership.Inventory) ([]Drift, error) {
	compared := &comparison{target: target, owner: owner, round: s.current(target), now: s.now()}
	if err := calls.Each(ctx, byKind(inventory), compared.compareKind); err != nil {
		return nil, err
	}
	slices.SortFunc(compared.found, func(a, b Drift) int { return strings.Compare(a.Key.String(), b.Key.String()) })
	return compared.found, nil
}

// SecretVersion is the resource version of a Secret with our label, as of a list that is made once a round and shared by all
// installations of the cluster; "" where it has none of that name.
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

// byKind are the entries that have been applied, those of a kind together.
func byKind(inventory ownership.Inventory) []batch {
	return grouped(inventory, func(entry ownership.Entry) (schema.GroupKind, bool) { return entry.GroupKind(), entry.UID != "" })
}

// comparison is of one installation with a round.
type comparison struct {
	target calls.Target
	owner  ownership.Owner
	round  *round
	now    time.Time

	lock  sync.Mutex
	found []Drift
}

// compareKind compares the entries of one kind. What a list of before has otherwise, or on its way out, is read once more.
func (l *comparison) compareKind(ctx context.Context, entries batch) error {
	all, err := l.list(ctx, entries[0])
	if err != nil || all.unknown {
		return err
	}
	return calls.Each(ctx, entries, func(ctx context.Context, entry ownership.Entry) error {
		sighting, found := all.objects[types.NamespacedName{Namespace: entry.Namespace, Name: entry.Name}]
		drift := l.compare(entry, sighting, found)
		if drift != nil && sighting.sum != nil || !all.fresh && (drift != nil || sighting.ending) {
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

// compare says how an observation differs from what was applied; nil if it does not. An object on its way out is let go first.
func (l *comparison) compare(entry ownership.Entry, seen observation, found bool) *Drift {
	switch {
	case !found && entry.Finished, seen.ending:
		return nil
	case !found:
		return &Drift{Key: entry.Key, Reason: DriftMissing}
	case seen.uid != entry.UID:
		return &Drift{Key: entry.Key, Reason: DriftReplaced}
	case seen.owner != l.owner.ID():
		return &Drift{Key: entry.Key, Reason: DriftFieldsLost, Fields: []string{".metadata.labels." + kubermaticv1.LabelInstallation}}
	}
	lost := seen.lost(entry.Fields)
	if len(lost) == 0 {
		return nil
	}
	return &Drift{Key: entry.Key, Reason: DriftFieldsLost, Fields: lost}
}

// relearnEvery is how often at most a round has the mapper ask again for what is served.
const relearnEvery = 5 * time.Second

// relearn has the mapper ask again, since a list showed that what it knows is old.
func (r *round) relearn(mapper meta.ResettableRESTMapper, now time.Time) {
	r.lock.Lock()
	defer r.lock.Unlock()
	if now.Sub(r.relearnt) >= relearnEvery {
		mapper.Reset()
		r.relearnt = now
	}
}

// listed are the objects of a kind with our label.
type listed struct {
	where   calls.Resource
	objects map[types.NamespacedName]observation
	// fresh says that the list was made by this very look; unknown, that the kind's objects can't be told.
	fresh, unknown bool
}

// list gives the objects of an entry's kind: none where a kind of a CustomResourceDefinition is not served, in any version.
func (l *comparison) list(ctx context.Context, entry ownership.Entry) (listed, error) {
	var asked calls.Resource
	for range 2 { // by what is known, and by what the API server says anew
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
		l.round.relearn(l.target.Mapper, l.now)
	}
	if !calls.IsCustom(entry.GroupKind()) {
		return listed{unknown: true}, nil // it left Kubernetes, and nobody can bring it back
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
