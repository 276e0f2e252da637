package survey

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-addons/trellis/pkg/calls"
	"github.com/trellis-addons/trellis/pkg/ownership"
)

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
