package rollout_test

import (
	"fmt"
	"strings"
	"testing"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/fleet/rollout"
	"github.com/trellis-addons/trellis/test/golden"
)

// reportedLines describes the statuses of a platform: the clusters that move on each seed, and the fleet.
func (p *platform) reportedLines(moved []string) (lines []string) {
	if len(moved) > 0 {
		lines = append(lines, "moves: "+strings.Join(moved, ", "))
	}
	for _, s := range p.seeds {
		lines = append(lines, fmt.Sprintf("%s: %s: %s", s.name, s.decision.Reason, s.decision.Message))
	}
	lines = append(lines, fmt.Sprintf("fleet, gate %d: %s: %s", p.fleet.Gate, p.fleet.Reason, p.fleet.Message))
	for _, group := range p.fleet.Groups {
		counts := group.Counts
		lines = append(lines, fmt.Sprintf("  %s is %s: %d of %d current, %d moving, %d behind, %d failed, %d sick, %d away", group.Name,
			group.State, counts.Current, counts.Selected, counts.Moving, counts.Behind, counts.Failed, counts.Sick, counts.Away))
	}
	return lines
}

// reportUntil plays minute by minute and describes changes, until a condition holds for the platform.
func (p *platform) reportUntil(story *golden.Story, step string, is func() bool) {
	p.t.Helper()
	last := ""
	for range 200 {
		before := len(p.granted)
		p.live(1)
		p.round()
		p.round() // gates that arrived, and rows
		lines := p.reportedLines(p.granted[before:])
		if text := strings.Join(lines, "\n"); text != last {
			story.Add(step, lines...)
			step, last = "then", text
		}
		if is() {
			return
		}
	}
	p.t.Errorf("after 200 minutes: %s: %s", p.fleet.Reason, p.fleet.Message)
}

// TestRolloutStory: The story of a set on two seeds: the preview waits, the canary moves first, a broken revision
// halts there, the fix continues and ends, a dead canary needs an approval.
func TestRolloutStory(t *testing.T) {
	canary := ring("canary", "0")
	canary.Start = v1.StartApproved
	p := newPlatform(t, 1, 2, &v1.Rollout{
		Pace:   v1.Pace{MaxConcurrency: of("50%"), MaxFailures: of(0), Soak: within(2), ProgressDeadline: within(5)},
		Groups: []v1.RolloutGroup{canary},
	})
	for seed := range 2 {
		p.add(seed, 0)
		for range 2 + seed {
			p.add(seed, 1)
		}
	}
	p.now++
	p.outcome = func(m *member, revision int) string {
		if revision == 2 {
			return "rollback"
		}
		return "ok"
	}
	story := golden.NewStory("A roll-out over two seeds: who moves, and what the statuses say, minute by minute")
	reasonIs := func(reason string) func() bool { return func() bool { return p.reason() == reason } }
	approve := func(group string) {
		p.approve = fmt.Sprintf("r%d/%s", p.revision, group)
	}

	p.revision = 1
	p.reportUntil(story, "a set is made; its first group is Approved", reasonIs(v1.ReasonAwaitingApproval))
	approve("canary")
	p.reportUntil(story, "annotation approve: r1/canary", reasonIs(v1.ReasonComplete))

	p.revision = 2
	approve("canary")
	p.reportUntil(story, "a broken version comes into range, approved", reasonIs(v1.ReasonHalted))
	late := p.add(0, 1)
	p.now++
	p.live(1)
	p.round()
	story.Add("a new cluster comes during the halt", fmt.Sprintf("%s stands as %s, in no group: %t", late.name,
		p.seeds[0].reported[late.name].State, p.seeds[0].reported[late.name].Group == rollout.NoGroup))

	p.revision = 3
	approve("canary")
	p.reportUntil(story, "the fix, approved", reasonIs(v1.ReasonComplete))

	for _, m := range p.members {
		m.dead = m.ring == 0
	}
	p.revision = 4
	approve("canary")
	p.reportUntil(story, "both canaries die, and a further version comes, approved", reasonIs(v1.ReasonNoEvidence))
	approve("rest")
	p.reportUntil(story, "annotation approve: r4/rest", reasonIs(v1.ReasonComplete))
	story.Match(t, "testdata/rollout.txt")
}
