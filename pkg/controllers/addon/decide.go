package addon

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
)

// decide finds the offer for clusters like this one.
func (r *Reconciler) decide(_ context.Context, f *facts) *loop.Outcome {
	offer, err := r.offers.to(platformOf(f.cluster))
	if err != nil {
		return retry(err)
	}
	if offer == nil { // every cluster is enqueued after the catalogues were read
		return waiting(v1.ReasonProgressing, "the catalogues are being read", 0)
	}
	f.offer = offer
	return nil
}

// platform decides the offer: the version of Kubernetes, and whether KKP runs the cluster.
type platform struct {
	k8sVersion string
	isKKP      bool
}

func platformOf(found target.Description) platform {
	return platform{k8sVersion: found.KubernetesVersion, isKKP: found.IsKKP()}
}

// offers has the parsed merged catalogues, and the offers of each platform. The KKP version is the same for the whole
// seed.
type offers struct {
	mutex       sync.Mutex
	loaded      bool
	entries     map[types.UID]knownEntry
	list        []*catalogue.Entry
	kkpVersion  string
	preReleases bool
	metrics     *Metrics
	byPlatform  map[platform]*catalogue.Availability
}

type knownEntry struct {
	version string
	entry   *catalogue.Entry
}

// to is the offer for clusters of a platform; nil before the first load.
func (o *offers) to(on platform) (*catalogue.Availability, error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if !o.loaded {
		return nil, nil
	}
	return o.decide(on)
}

func (o *offers) decide(on platform) (*catalogue.Availability, error) {
	if known, ok := o.byPlatform[on]; ok {
		return known, nil
	}
	about := catalogue.Platform{KKPVersion: o.kkpVersion, K8sVersion: on.k8sVersion, AllowPrereleases: o.preReleases}
	if !on.isKKP {
		about.KKPVersion = catalogue.OutsideKKP
	}
	decided, err := catalogue.Available(o.list, about)
	if err != nil {
		return nil, fmt.Errorf("listing the add-ons that fit Kubernetes %q: %w", on.k8sVersion, err)
	}
	o.metrics.decisions.Inc()
	o.byPlatform[on] = &decided
	return &decided, nil
}

// load replaces the merged catalogues, and returns the platforms in use whose offer changed.
func (o *offers) load(entries map[types.UID]knownEntry, inUse map[platform]bool) (changed map[platform]bool, err error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	before := o.byPlatform
	first := !o.loaded
	o.entries, o.list, o.loaded = entries, nil, true
	for _, known := range entries {
		o.list = append(o.list, known.entry)
	}
	o.kkpVersion = catalogue.StampedKKPVersion(o.list)
	o.byPlatform = make(map[platform]*catalogue.Availability, len(inUse))
	changed = map[platform]bool{}
	for on := range inUse {
		decided, err := o.decide(on)
		if err != nil {
			return nil, err
		}
		if was := before[on]; first || was == nil || was.Digest != decided.Digest {
			changed[on] = true
		}
	}
	return changed, nil
}

// templateOf is the template of a requested add-on; nil if none is known.
func (o *offers) templateOf(asked v1.AddonReference) *v1.Template {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	for _, entry := range o.list {
		if entry.Addon.Name == asked.Name {
			return catalogue.TemplateOf(&entry.Addon, asked.Version)
		}
	}
	return nil
}

// known are the last loaded entries.
func (o *offers) known() map[types.UID]knownEntry {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.entries
}
