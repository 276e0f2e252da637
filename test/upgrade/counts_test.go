package upgrade

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/trellis-addons/trellis/test/audit"
)

// writes are how often each call was made that is not a reading one, by "verb resource" and what it was about.
type writes map[string]int

func (w writes) String() string {
	var lines []string
	for _, call := range slices.Sorted(maps.Keys(w)) {
		lines = append(lines, fmt.Sprintf("%d x %s", w[call], call))
	}
	return strings.Join(lines, "\n")
}

// marks are how many events each audit log had.
type marks map[string]int

// events of an API server since a mark.
func (p *platform) events(where string, since marks) []audit.Event {
	p.t.Helper()
	found, err := audit.Read(p.fleet.Cluster(where).AuditLog())
	if err != nil {
		p.t.Fatal(err)
	}
	return found[since[where]:]
}

// mark where the audit logs end at this moment.
func (p *platform) mark(clusters ...string) marks {
	p.t.Helper()
	made := marks{}
	for _, where := range clusters {
		made[where] = len(p.events(where, marks{}))
	}
	return made
}

// writesTo an API server since a mark, refused ones among them.
func (p *platform) writesTo(where string, since marks) writes {
	p.t.Helper()
	made := writes{}
	for _, event := range p.events(where, since) {
		if isWrite(event) {
			at := event.ObjectRef
			made[fmt.Sprintf("%s %s %s", event.Verb, strings.TrimSuffix(at.Resource+"/"+at.Subresource, "/"),
				strings.Trim(at.Namespace+"/"+at.Name, "/"))]++
		}
	}
	return made
}

// refusedBy an API server since a mark: how many writes.
func (p *platform) refusedBy(where string, since marks) (count int) {
	p.t.Helper()
	for _, event := range p.events(where, since) {
		if isWrite(event) && event.ResponseStatus.Code >= http.StatusBadRequest {
			count++
		}
	}
	return count
}

// isWrite leaves out reviews of rights and tokens, which write nothing.
func isWrite(event audit.Event) bool {
	at := event.ObjectRef
	return at != nil && !slices.Contains([]string{"get", "list", "watch"}, event.Verb) &&
		!strings.HasSuffix(at.APIGroup, "authorization.k8s.io") && !strings.HasSuffix(at.APIGroup, "authentication.k8s.io")
}

func (w writes) sum() (sum int) {
	for _, times := range w {
		sum += times
	}
	return sum
}

func (w writes) where(holds func(call string) bool) writes {
	made := maps.Clone(w)
	maps.DeleteFunc(made, func(call string, _ int) bool { return !holds(call) })
	return made
}

// readsOf ConfigMaps, which all installations have, in a user cluster since a mark.
func (p *platform) readsOf(where string, since marks) (count int) {
	for _, event := range p.events(where, since) {
		if event.ObjectRef != nil && (event.Verb == "get" || event.Verb == "list") && event.ObjectRef.Resource == "configmaps" {
			count++
		}
	}
	return count
}

// rested waits until the seed's manager has passed over so many installations, has looked for drift, and has nothing to do for a while.
func (p *platform) rested(where string, installations int, since marks) {
	p.t.Helper()
	running := p.managers[where+seedChart]
	looked, quiet := time.Time{}, 0
	last := errors.New("nobody has looked yet")
	p.await(func(ctx context.Context) error {
		if time.Since(looked) < betweenLooks { // a look costs the manager as much as some passes
			return last
		}
		looked = time.Now()
		if last = p.isBusy(ctx, running, installations, since); last != nil {
			quiet = 0
			return last
		}
		if quiet++; quiet < quietLooks {
			last = errors.New("it has been quiet for a moment only")
		}
		return last
	})
}

const (
	betweenLooks = 500 * time.Millisecond
	quietLooks   = 4
)

// isBusy says with what.
func (p *platform) isBusy(ctx context.Context, running *manager, installations int, since marks) error {
	seen, err := p.metrics(ctx, running)
	passes := int(seen.sum("controller_runtime_reconcile_total", `controller="addoninstallation"`))
	waiting, working := int(seen.sum("workqueue_depth", "")), int(seen.sum("controller_runtime_active_workers", ""))
	switch {
	case err != nil:
		return err
	case passes < installations:
		return fmt.Errorf("%d passes over installations", passes)
	case waiting+working > 0:
		return fmt.Errorf("%d wait, %d are worked on", waiting, working)
	case p.readsOf(userName, since) == 0:
		return errors.New("nobody looked for drift")
	}
	return nil
}

// expectNothingRendered fails where the seed's manager has rendered since it started.
func (p *platform) expectNothingRendered(where string) {
	p.t.Helper()
	if rendered := p.rendered(where); rendered > 0 {
		p.t.Errorf("it rendered %d times", rendered)
	}
}

// rendered is how often the seed's manager has, since it started.
func (p *platform) rendered(where string) int {
	p.t.Helper()
	seen, err := p.metrics(p.t.Context(), p.managers[where+seedChart])
	if err != nil {
		p.t.Fatal(err)
	}
	return int(seen.sum("trellis_render_results_total", ""))
}
