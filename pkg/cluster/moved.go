package cluster

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
)

// MovedError says that a kind is served in another version than the one that is watched. It ends the
// manager, which begins with the other one when it starts anew: its caches have what was there before,
// and would have it for ever.
type MovedError struct {
	Kind     schema.GroupKind
	From, To string
}

func (e *MovedError) Error() string {
	return fmt.Sprintf("kind %s is not served in version %s any more, and is in %s: the manager has to start anew to read it",
		e.Kind, e.From, e.To)
}

// moved is a MovedError once a kind that is watched is served in other versions only. A kind that is
// served in none was taken away, and is waited for. What can't be asked for is asked for again.
func (k *optionalKinds) moved(ctx context.Context) error {
	if k.anew == nil {
		return nil
	}
	now, err := k.anew()
	if err != nil {
		noteUnasked(ctx, err)
		return nil
	}
	for _, wanted := range k.wanted {
		switch moved, err := k.movedFrom(wanted, now); {
		case err != nil:
			noteUnasked(ctx, err)
		case moved != nil:
			return moved
		}
	}
	return nil
}

func noteUnasked(ctx context.Context, err error) {
	ctrl.LoggerFrom(ctx).Error(err, "looking whether kinds are served in the versions that are watched; tried again")
}

// movedFrom is nil where a kind is not watched, is served as it is watched, or not at all.
func (k *optionalKinds) movedFrom(wanted optionalKind, now meta.RESTMapper) (*MovedError, error) {
	watched, isWatched := k.begun(wanted.kind)
	if !isWatched {
		return nil, nil
	}
	_, err := now.RESTMapping(watched.GroupKind(), watched.Version)
	if !meta.IsNoMatchError(err) {
		return nil, err
	}
	served, err := wanted.ask(now)
	switch {
	case meta.IsNoMatchError(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &MovedError{Kind: watched.GroupKind(), From: watched.Version, To: served.Version}, nil
}
