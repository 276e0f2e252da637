package addoninstallation

import (
	"fmt"
	"io/fs"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/apply"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

// surveys hold one Survey per cluster: its metadata lists are shared by all installations of the cluster.
type surveys struct {
	mutex sync.Mutex
	byUID map[types.UID]*apply.Survey
}

func (s *surveys) of(uid types.UID, interval time.Duration) *apply.Survey {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.byUID == nil {
		s.byUID = map[types.UID]*apply.Survey{}
	}
	if _, ok := s.byUID[uid]; !ok {
		s.byUID[uid] = apply.NewSurvey(interval, time.Now)
	}
	return s.byUID[uid]
}

// renew begins a new round for a cluster, whatever the old one's age.
func (s *surveys) renew(uid types.UID, interval time.Duration) *apply.Survey {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.byUID[uid] = apply.NewSurvey(interval, time.Now)
	return s.byUID[uid]
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
