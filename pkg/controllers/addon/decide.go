package addon

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/loop"
)

// decide finds what clusters like this one are offered.
func (r *Reconciler) decide(_ context.Context, f *facts) loop.Outcome {
	offer, err := r.offers.to(f.cluster.KubernetesVersion)
	if err != nil {
		return retry(err)
	}
	if offer == nil { // every cluster is enqueued once the catalogues were read
		return waiting(v1.ReasonProgressing, "the catalogues are being read", 0)
	}
	f.offer = offer
	return nil
}

// offers hold the parsed merged catalogues, and what was decided from them for each Kubernetes
// version. The KKP version is one for the whole seed.
type offers struct {
	mutex       sync.Mutex
	loaded      bool
	entries     map[types.UID]knownEntry
	list        []*catalogue.Entry
	kkpVersion  string
	preReleases bool
	metrics     *Metrics
	byVersion   map[string]*catalogue.Availability
}

type knownEntry struct {
	version string
	entry   *catalogue.Entry
}

// to is what clusters with that Kubernetes version are offered; nil before the first load.
func (o *offers) to(k8sVersion string) (*catalogue.Availability, error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if !o.loaded {
		return nil, nil
	}
	return o.decide(k8sVersion)
}

func (o *offers) decide(k8sVersion string) (*catalogue.Availability, error) {
	if known, ok := o.byVersion[k8sVersion]; ok {
		return known, nil
	}
	platform := catalogue.Platform{KKPVersion: o.kkpVersion, K8sVersion: k8sVersion, AllowPrereleases: o.preReleases}
	decided, err := catalogue.Available(o.list, platform)
	if err != nil {
		return nil, fmt.Errorf("deciding for Kubernetes %q: %w", k8sVersion, err)
	}
	o.metrics.decisions.Inc()
	o.byVersion[k8sVersion] = &decided
	return &decided, nil
}

// load replaces the merged catalogues, and returns the versions in use whose offer changed.
func (o *offers) load(entries map[types.UID]knownEntry, inUse map[string]bool) (changed map[string]bool, err error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	before := o.byVersion
	first := !o.loaded
	o.entries, o.list, o.loaded = entries, nil, true
	for _, known := range entries {
		o.list = append(o.list, known.entry)
	}
	o.kkpVersion = catalogue.StampedKKPVersion(o.list)
	o.byVersion = make(map[string]*catalogue.Availability, len(inUse))
	changed = map[string]bool{}
	for version := range inUse {
		decided, err := o.decide(version)
		if err != nil {
			return nil, err
		}
		if was := before[version]; first || was == nil || was.Digest != decided.Digest {
			changed[version] = true
		}
	}
	return changed, nil
}

// known are the entries that were loaded last.
func (o *offers) known() map[types.UID]knownEntry {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.entries
}
