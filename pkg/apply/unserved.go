package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/ownership"
)

// A kind that was served once may not be any more: somebody deleted its CustomResourceDefinition, and its objects with it. The mapper
// does not know until it is asked anew, and the API server answers 404 for the path that it names.

// isUnserved says that a list was refused since there is nothing at its path: a kind that is served has a list, if an empty one.
func isUnserved(err error) bool { return apierrors.IsNotFound(err) }

// isUnknown says whether nobody can tell if a kind that is not served still has objects: the API server registered behind its group
// does not answer, or discovery could not tell the group's kinds.
func (t Target) isUnknown(ctx context.Context, entry ownership.Entry) (bool, error) {
	registered, down, err := t.isRegistered(ctx, entry)
	return down || registered && t.isMissing(entry.Group), err
}

// isMissing says whether discovery could not tell the kinds of a group: its API server may have gone down since its registration
// was looked at last.
func (t Target) isMissing(group string) bool {
	return t.Served != nil && slices.ContainsFunc(t.Served.MissingGroups(), func(missing string) bool {
		name, _, _ := strings.Cut(missing, "/")
		return name == group
	})
}

// isRegistered says whether an API server is registered for a group and version, and whether it does not answer.
func (t Target) isRegistered(ctx context.Context, entry ownership.Entry) (registered, down bool, err error) {
	name := entry.Version + "." + entry.Group
	service, err := readWhole(ctx, t.Dynamic.Resource(apiServices), place{name: name})
	if apierrors.IsNotFound(err) {
		return false, false, nil
	}
	if err != nil {
		return false, false, fmt.Errorf("reading APIService %q: %w", name, err)
	}
	conditions, _, _ := unstructured.NestedSlice(service.Object, "status", "conditions")
	for _, condition := range conditions {
		fields, _ := condition.(map[string]any)
		if fields["type"] == "Available" {
			return true, fields["status"] != "True", nil
		}
	}
	return true, true, nil
}

// revisit has a rollout look at a definition again that was ready and whose kind is not served: it may have been deleted meanwhile.
// What was written of its kinds went with one that is made anew, and is written again.
func (r *Rollout) revisit() {
	lost, anew := map[string]bool{}, map[string]bool{}
	for _, it := range r.items {
		_, own := r.declared[it.object.GroupVersionKind()]
		if own && it.note != nil && it.note.Reason == kubermaticv1.ReasonWaitingForStage {
			lost[it.key.Group] = true
		}
	}
	for _, it := range r.items {
		if isCRD(it.object) {
			group := ownership.GroupOf(it.key)
			it.ready = it.ready && !lost[group]
			anew[group] = anew[group] || it.written > 0 && !it.done
		}
	}
	for _, it := range r.items {
		if _, own := r.declared[it.object.GroupVersionKind()]; own && anew[it.key.Group] {
			it.done, it.ready = false, false
		}
	}
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
	where   resource
	objects map[types.NamespacedName]sighting
	// fresh says that the list was made by this very look; unknown, that the kind's objects can't be told.
	fresh, unknown bool
}

// list gives the objects of an entry's kind: none where a kind of a CustomResourceDefinition is not served, in any version.
func (l *look) list(ctx context.Context, entry ownership.Entry) (listed, error) {
	var asked resource
	for range 2 { // by what is known, and by what the API server says anew
		where, served, err := l.round.kinds.known(entry.Key, entry.Version)
		if err != nil {
			return listed{}, fmt.Errorf("looking up the kind of %q: %w", entry.Key, err)
		}
		if served && where != asked {
			found, err := l.listAt(ctx, entry, where)
			if !isUnserved(err) {
				return found, err
			}
			asked = where
		}
		l.round.relearn(l.target.Mapper, l.now)
	}
	if !isCustom(entry.GroupKind()) {
		return listed{unknown: true}, nil // it left Kubernetes, and nobody can bring it back
	}
	unknown, err := l.target.isUnknown(ctx, entry)
	return listed{fresh: true, unknown: unknown}, err
}

func (l *look) listAt(ctx context.Context, entry ownership.Entry, where resource) (listed, error) {
	seen, fresh, err := l.round.list(ctx, l.target, where)
	if isKindTrouble(entry.GroupKind(), err) {
		return listed{unknown: true}, nil
	}
	if err != nil {
		return listed{}, fmt.Errorf("listing the %s objects of add-ons: %w", entry.Kind, err)
	}
	return listed{where: where, objects: seen, fresh: fresh}, nil
}
