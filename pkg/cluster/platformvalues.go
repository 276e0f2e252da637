package cluster

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/platformvalues"
	"github.com/trellis-addons/trellis/pkg/target"
	"github.com/trellis-addons/trellis/pkg/values/strictlist"
)

// KindPlatformValues is the kind of a Change of what the platform's list says of a cluster.
var KindPlatformValues = schema.GroupKind{Kind: "ConfigMap"}

// ValuesOptions are what PlatformValues works with.
type ValuesOptions struct {
	// Registries are those of flag --image-mirror.
	Registries map[string]string
	// Clusters are those whose installations are told of a change.
	Clusters Finder
	// Seed is the name of this seed, empty while nothing tells it. It is called where an item selects by it.
	Seed     func(ctx context.Context) (string, error)
	Recorder events.EventRecorder
}

// PlatformValues is what the platform says of its clusters to all templates, by the list in ConfigMap
// addon-platform-values (ADR 102). The list is taken as its ConfigMap changes, so that all passes see the same, and whoever
// saw something else is woken.
type PlatformValues struct {
	options  ValuesOptions
	kept     strictlist.Kept[platformvalues.Item]
	informed toolscache.ResourceEventHandlerRegistration

	mutex sync.Mutex
	// changed tells of changes, from when a controller asked for them; nil: this process does not lead, and reports
	// nothing.
	changed func(Change)
	// untold is the ConfigMap whose problem was not reported yet; nil as a rule.
	untold *corev1.ConfigMap
}

// UnreadValuesError says that no list was good since the process began: what templates are to see is not known.
type UnreadValuesError struct{ err error }

func (e *UnreadValuesError) Error() string {
	return "what the platform says of its clusters can't be told: " + e.err.Error()
}

// Unwrap gives what is wrong.
func (e *UnreadValuesError) Unwrap() error { return e.err }

// NewPlatformValues follows the list in a cache that holds it alone. It is to be called before the cache runs.
func NewPlatformValues(ctx context.Context, held cache.Cache, options ValuesOptions) (*PlatformValues, error) {
	v := &PlatformValues{options: options}
	informer, err := held.GetInformer(ctx, &corev1.ConfigMap{}, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, err
	}
	v.informed, err = informer.AddEventHandler(toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, isFirst bool) {
			if !isFirst { // there was none
				v.kept.Empty()
			}
			before, after := v.take(object)
			if !isFirst {
				v.wake(ctx, before, after)
			}
		},
		UpdateFunc: func(_, object any) {
			before, after := v.take(object)
			v.wake(ctx, before, after)
		},
		DeleteFunc: func(object any) { v.drop(ctx, object) },
	})
	return v, err
}

// valuesState is what is known of the list.
type valuesState = strictlist.State[platformvalues.Item]

// take the present list.
func (v *PlatformValues) take(object any) (before, after valuesState) {
	before = v.kept.State()
	found, isMap := object.(*corev1.ConfigMap)
	if !isMap {
		return before, before
	}
	after, isNew := v.kept.Update(found, readValues)
	if !isNew {
		return before, after
	}
	v.mutex.Lock()
	v.untold = nil
	if after.Problem != nil {
		v.untold = found
	}
	v.mutex.Unlock()
	v.report()
	return before, after
}

// drop the list: there is none any more, and nobody sees anything of it.
func (v *PlatformValues) drop(ctx context.Context, object any) {
	if tombstone, missed := object.(toolscache.DeletedFinalStateUnknown); missed {
		object = tombstone.Obj
	}
	before := v.kept.State()
	after := v.kept.Empty()
	v.mutex.Lock()
	v.untold = nil
	leads := v.changed != nil
	v.mutex.Unlock()
	if found, isMap := object.(*corev1.ConfigMap); isMap && leads {
		v.options.Recorder.Eventf(found, nil, corev1.EventTypeWarning, v1.EventListGone, "Read",
			"ConfigMap %q is gone: templates see nothing of it any more", found.Name)
	}
	v.wake(ctx, before, after)
}

func readValues(found *corev1.ConfigMap) ([]platformvalues.Item, error) {
	text, err := platformvalues.List.Text(found)
	if err != nil {
		return nil, err
	}
	return platformvalues.Read(text)
}

// subscribe calls a function for each cluster that sees something else from now on.
func (v *PlatformValues) subscribe(changed func(Change)) {
	if v == nil {
		return
	}
	v.mutex.Lock()
	v.changed = changed
	v.mutex.Unlock()
	v.report()
}

// report tells once of each version of the list that it is refused.
func (v *PlatformValues) report() {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	state := v.kept.State()
	if v.changed == nil || v.untold == nil || state.Problem == nil {
		return
	}
	stays := "the last good list stays in force"
	if !state.Read {
		stays = "no list was good since this process began, so installations wait, and what is applied stays"
	}
	v.options.Recorder.Eventf(v.untold, nil, corev1.EventTypeWarning, v1.EventListRefused, "Read", "%s: %s", state.Problem, stays)
	v.untold = nil
}

// wake tells of the clusters that see something else than before; of all, where that is not known.
func (v *PlatformValues) wake(ctx context.Context, before, after valuesState) {
	v.mutex.Lock()
	changed := v.changed
	v.mutex.Unlock()
	if changed == nil {
		return
	}
	change := Change{Kind: KindPlatformValues, Name: platformvalues.ListName}
	clusters, err := v.options.Clusters.List(ctx)
	seed, seedErr := v.seedFor(ctx, before, after)
	if err = errors.Join(err, seedErr); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "looking which clusters see other values of the platform: all are woken")
	}
	if err != nil || before.Read != after.Read {
		changed(change)
		return
	}
	for _, one := range clusters {
		was, wasErr := merged(before, one, seed)
		is, isErr := merged(after, one, seed)
		if wasErr != nil || isErr != nil || !reflect.DeepEqual(was, is) {
			change.Cluster = one.Ref
			changed(change)
		}
	}
}

// seedFor is the name of the seed, where lists need it.
func (v *PlatformValues) seedFor(ctx context.Context, lists ...valuesState) (string, error) {
	if !slices.ContainsFunc(lists, func(one valuesState) bool { return platformvalues.NeedSeed(one.Items) }) {
		return "", nil
	}
	return v.options.Seed(ctx)
}

// of is what the list says of a cluster; nil for nothing. The error is an *UnreadValuesError, or of who tells the
// seed's name.
func (v *PlatformValues) of(ctx context.Context, cluster target.Description) (map[string]any, error) {
	if v == nil {
		return nil, nil
	}
	if !v.informed.HasSynced() && !toolscache.WaitForCacheSync(ctx.Done(), v.informed.HasSynced) {
		return nil, fmt.Errorf("waiting for ConfigMap %q: %w", platformvalues.ListName, context.Cause(ctx))
	}
	state := v.kept.State()
	if state.Problem != nil && !state.Read {
		return nil, &UnreadValuesError{state.Problem}
	}
	seed, err := v.seedFor(ctx, state)
	if err != nil {
		return nil, err
	}
	return merged(state, cluster, seed)
}

func merged(list valuesState, cluster target.Description, seed string) (map[string]any, error) {
	if len(list.Items) == 0 {
		return nil, nil
	}
	found, err := platformvalues.Merged(list.Items, cluster.Ref, Labels(cluster, seed))
	if err != nil {
		return nil, &UnreadValuesError{err}
	}
	return found, nil
}

// registries are those of flag --image-mirror.
func (v *PlatformValues) registries() map[string]string {
	if v == nil {
		return nil
	}
	return v.options.Registries
}
