package cluster

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
)

// MovedError reports that a watched kind is served only in another version. It ends the manager, which starts again
// with the new version: otherwise its caches would keep the old data forever.
type MovedError struct {
	Kind     schema.GroupKind
	From, To string
}

func (e *MovedError) Error() string {
	return fmt.Sprintf("kind %s is no longer served in version %s, but in version %s: the manager restarts to read that version",
		e.Kind, e.From, e.To)
}

// moved is a MovedError once a watched kind is served only in other versions. If no version is served, the CRD was
// removed, and the manager waits for it. After a failed request it asks again.
func (k *optionalKinds) moved(ctx context.Context) error {
	if k.newMapper == nil {
		return nil
	}
	now, err := k.newMapper()
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
	ctrl.LoggerFrom(ctx).Error(err, "checking that watched versions of kinds are served; trying again")
}

// movedFrom is nil if a kind is not watched, is served in the watched version, or is not served.
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
