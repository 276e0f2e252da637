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
	"github.com/trellis-addons/trellis/pkg/clusters/platformvalues"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/values/strictlist"
)

// KindPlatformValues is the kind of a Change of the platform's values about a cluster.
var KindPlatformValues = schema.GroupKind{Kind: "ConfigMap"}

// ValuesOptions are the dependencies of PlatformValues.
type ValuesOptions struct {
	// Registries are those of flag --image-mirror.
	Registries map[string]string
	// Clusters are those whose installations are notified of a change.
	Clusters Finder
	// Seed is the name of this seed, empty while it is unknown. It is called if an item selects by the name.
	Seed     func(ctx context.Context) (string, error)
	Recorder events.EventRecorder
}

// PlatformValues are the platform's values about its clusters for all templates, from the list in ConfigMap
// addon-platform-values (ADR 102). The list is parsed once per change of its ConfigMap, so that all reconciliations
// see the same values, and affected clusters are enqueued.
type PlatformValues struct {
	options  ValuesOptions
	kept     strictlist.Kept[platformvalues.Item]
	informed toolscache.ResourceEventHandlerRegistration

	mutex sync.Mutex
	// changed reports changes, once a controller subscribed; nil: this process does not lead, and reports nothing.
	changed func(Change)
	// untold is the ConfigMap whose problem was not reported yet; usually nil.
	untold *corev1.ConfigMap
}

// UnreadValuesError reports that no list was valid since the process began: the values for templates are unknown.
type UnreadValuesError struct{ err error }

func (e *UnreadValuesError) Error() string {
	return "the platform's values for clusters can't be determined: " + e.err.Error()
}

// Unwrap is the problem of the list.
func (e *UnreadValuesError) Unwrap() error { return e.err }

// NewPlatformValues follows the list in a cache that holds only the list. Call it before the cache runs.
func NewPlatformValues(ctx context.Context, held cache.Cache, options ValuesOptions) (*PlatformValues, error) {
	v := &PlatformValues{options: options}
	informer, err := held.GetInformer(ctx, &corev1.ConfigMap{}, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, err
	}
	v.informed, err = informer.AddEventHandler(toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, isFirst bool) {
			if !isFirst { // there was no list
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

// valuesState is the state of the list.
type valuesState = strictlist.State[platformvalues.Item]

// take parses the current list.
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

// drop removes the list after its deletion: no cluster has values then.
func (v *PlatformValues) drop(ctx context.Context, object any) {
	before := v.kept.State()
	after := v.kept.Empty()
	v.mutex.Lock()
	v.untold = nil
	leads := v.changed != nil
	v.mutex.Unlock()
	if found, isMap := objectIn[*corev1.ConfigMap](object); isMap && leads {
		v.options.Recorder.Eventf(found, nil, corev1.EventTypeWarning, v1.EventListGone, "Read",
			"ConfigMap %q was deleted: templates no longer see its values", found.Name)
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

// subscribe calls a function for each cluster whose values change from now on.
func (v *PlatformValues) subscribe(changed func(Change)) {
	if v == nil {
		return
	}
	v.mutex.Lock()
	v.changed = changed
	v.mutex.Unlock()
	v.report()
}

// report reports once per version of the list that it is refused.
func (v *PlatformValues) report() {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	state := v.kept.State()
	if v.changed == nil || v.untold == nil || state.Problem == nil {
		return
	}
	stays := "the last valid list stays in use"
	if !state.Read {
		stays = "no list was valid since this process started, so installations wait, and applied objects stay"
	}
	v.options.Recorder.Eventf(v.untold, nil, corev1.EventTypeWarning, v1.EventListRefused, "Read", "%s: %s", state.Problem, stays)
	v.untold = nil
}

// wake reports the clusters whose values changed; all, if that is unknown.
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
		ctrl.LoggerFrom(ctx).Error(err, "finding clusters whose platform values changed; reconciling all clusters")
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

// seedFor is the name of the seed, if the lists need it.
func (v *PlatformValues) seedFor(ctx context.Context, lists ...valuesState) (string, error) {
	if !slices.ContainsFunc(lists, func(one valuesState) bool { return platformvalues.NeedSeed(one.Items) }) {
		return "", nil
	}
	return v.options.Seed(ctx)
}

// of are the values of a cluster; nil: none. The error is an *UnreadValuesError, or that of Seed.
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
