package addoninstallation

import (
	"fmt"
	"io/fs"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/apply"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/release"
)

// views hold one view per cluster, so that one list serves all its installations; by UID, since a name may come back.
type views struct {
	mutex sync.Mutex
	byUID map[types.UID]*view
}

// view is what the installations of a user cluster share of what was seen there.
type view struct {
	survey     *apply.Survey
	namespaces *apply.Namespaces
	helmNames  *release.HelmNames
	used       time.Time
}

// viewKept is how many intervals a view is kept at least after the last look; it is dropped when the next cluster comes.
const viewKept = 3

func (v *views) surveyOf(uid types.UID, interval time.Duration) *apply.Survey {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	return v.of(uid, interval).survey
}

// newSurvey begins a cluster's survey anew: whatever it has listed, of workloads too, is listed again.
func (v *views) newSurvey(uid types.UID, interval time.Duration) *apply.Survey {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	seen := v.of(uid, interval)
	seen.survey = apply.NewSurvey(interval, time.Now)
	return seen.survey
}

func (v *views) namespacesOf(uid types.UID, interval time.Duration) *apply.Namespaces {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	return v.of(uid, interval).namespaces
}

func (v *views) helmNamesOf(uid types.UID, interval time.Duration) *release.HelmNames {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	return v.of(uid, interval).helmNames
}

// of gives a cluster's view; the caller holds the mutex.
func (v *views) of(uid types.UID, interval time.Duration) *view {
	now := time.Now()
	if v.byUID == nil {
		v.byUID = map[types.UID]*view{}
	}
	if _, ok := v.byUID[uid]; !ok {
		maps.DeleteFunc(v.byUID, func(_ types.UID, other *view) bool { return now.Sub(other.used) > viewKept*interval })
		v.byUID[uid] = &view{
			survey: apply.NewSurvey(interval, time.Now), namespaces: apply.NewNamespaces(time.Now), helmNames: release.NewHelmNames(time.Now),
		}
	}
	v.byUID[uid].used = now
	return v.byUID[uid]
}

// capabilityCharts remembers by content digest which charts ask for the cluster's capabilities.
type capabilityCharts struct {
	mutex    sync.Mutex
	byDigest map[string]bool
}

func (c *capabilityCharts) ask(digest string, chart fs.FS) (bool, error) {
	c.mutex.Lock()
	asks, known := c.byDigest[digest]
	c.mutex.Unlock()
	if known {
		return asks, nil
	}
	asks, err := asksForCapabilities(chart)
	if err != nil {
		return false, fmt.Errorf("searching the chart: %w", err)
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.byDigest == nil || len(c.byDigest) >= capabilityChartsKept {
		c.byDigest = map[string]bool{}
	}
	c.byDigest[digest] = asks
	return asks, nil
}

// capabilityChartsKept bounds the memory of charts; past it, it is emptied.
const capabilityChartsKept = 4096

// entries keeps merged catalogues as read, so that each is parsed once for all installations of its add-on.
type entries struct {
	mutex  sync.Mutex
	byName map[string]keptEntry
}

type keptEntry struct {
	resourceVersion string
	entry           *catalogue.Entry
}

func (e *entries) of(merged *kubermaticv1.AddonCatalogue) (*catalogue.Entry, error) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if kept, ok := e.byName[merged.Name]; ok && kept.resourceVersion == merged.ResourceVersion {
		return kept.entry, nil
	}
	entry, err := catalogue.NewEntry(merged)
	if err != nil {
		return nil, err
	}
	if e.byName == nil {
		e.byName = map[string]keptEntry{}
	}
	e.byName[merged.Name] = keptEntry{resourceVersion: merged.ResourceVersion, entry: entry}
	return entry, nil
}
