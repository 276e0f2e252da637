package standins

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/gate"
)

// course of writes and answers; each is at a second.
type happening struct {
	at      int
	cluster string
	// write is the installation that is written, with content; else what a player said of it.
	write, content, said string
	state                metav1.ConditionStatus
	reason               string
}

// What breaks the waves is told, and what keeps to them is not. Red when a place is counted free before the soak, when the order of
// groups isn't looked at, when a Ready of before counts, or when a write that is repeated neither takes a place nor keeps one.
func TestMovesReportWhatBreaksTheWaves(t *testing.T) {
	ready := func(at int, cluster string) happening {
		return happening{at: at, cluster: cluster, said: "web", state: metav1.ConditionTrue, reason: v1.ReasonReady}
	}
	wrote := func(at int, cluster string) happening { return happening{at: at, cluster: cluster, write: "web"} }
	not := func(at int, cluster, reason string) happening {
		return happening{at: at, cluster: cluster, said: "web", state: metav1.ConditionFalse, reason: reason}
	}
	cases := map[string]struct {
		happen []happening
		want   string
		peaks  []int
	}{
		"in order": {
			happen: []happening{wrote(0, "a1"), ready(1, "a1"), wrote(6, "a2"), ready(7, "a2"), wrote(12, "b1"), wrote(12, "b2")},
			peaks:  []int{1, 2},
		},
		"within the soak": {
			happen: []happening{wrote(0, "a1"), ready(1, "a1"), wrote(5, "a2")}, want: "2 clusters of group 0", peaks: []int{2, 0},
		},
		"a later group": {
			happen: []happening{wrote(0, "a1"), ready(1, "a1"), wrote(6, "b1")}, want: "a2 of group 0 is not done", peaks: []int{1, 1},
		},
		"a rollback is a failure, and an end": {
			happen: []happening{wrote(0, "a1"), not(1, "a1", v1.ReasonRolledBack), wrote(2, "a2")},
			want:   "after the halt", peaks: []int{1, 0},
		},
		"not Ready again": {
			happen: []happening{wrote(0, "a1"), ready(1, "a1"), not(2, "a1", v1.ReasonUnhealthy), wrote(9, "a2")},
			want:   "2 clusters of group 0", peaks: []int{2, 0},
		},
		"asked for again, since an answer was lost": {
			happen: []happening{wrote(0, "a1"), ready(1, "a1"), wrote(2, "a1"), wrote(7, "a2")}, peaks: []int{1, 0},
		},
		"within the soak of what was asked for again": {
			happen: []happening{wrote(0, "a1"), ready(1, "a1"), wrote(3, "a1"), wrote(7, "a2")},
			want:   "2 clusters of group 0", peaks: []int{2, 0},
		},
		"asked for again when it was done": {
			happen: []happening{wrote(0, "a1"), ready(1, "a1"), wrote(6, "a2"), wrote(7, "a1")},
			want:   "2 clusters of group 0", peaks: []int{2, 0},
		},
		"asked for something else when it was Ready": {
			happen: []happening{wrote(0, "a1"), ready(1, "a1"), {at: 2, cluster: "a1", write: "web", content: "other"}, wrote(20, "a2")},
			want:   "2 clusters of group 0", peaks: []int{2, 0},
		},
		"a new cluster takes no place": {happen: []happening{wrote(0, "a1"), wrote(0, "new")}, peaks: []int{1, 0}},
	}
	for name, one := range cases {
		t.Run(name, func(t *testing.T) {
			moves := NewMoves(Waves{
				Group: func(name string) int { return strings.Index("ab", name[:1]) }, Limits: []int{1, 2}, Soak: 5 * time.Second, Strict: true,
			})
			log, begin := NewLog(moves), time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
			moves.Begin(1, "a1", "a2", "b1", "b2")
			for _, what := range one.happen {
				now := begin.Add(time.Duration(what.at) * time.Second)
				if what.write != "" {
					log.add(writing(what.cluster, what.content, now), func() time.Time { return now })
					continue
				}
				moves.Saved(saying(what, now), now)
			}
			complaints := moves.Complaints()
			if one.want == "" && len(complaints) > 0 || one.want != "" && (len(complaints) != 1 || !strings.Contains(complaints[0], one.want)) {
				t.Errorf("complaints %q, want %q", complaints, one.want)
			}
			if peaks := moves.Peaks(); !slices.Equal(peaks, one.peaks) {
				t.Errorf("%v moved at once, want %v", peaks, one.peaks)
			}
		})
	}
}

// writing applies installation web in a cluster, with content that has the digest of the same name.
func writing(cluster, content string, now time.Time) Write {
	return writeOf(gate.Call{
		Method: http.MethodPatch, Path: "/apis/kubermatic.k8c.io/v1/namespaces/" + NamespaceOf(cluster) + "/addoninstallations/web",
		Body: fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q,%q:%q}}}`,
			v1.AnnotationDigest, content, v1.AnnotationMoved, now.Format(time.RFC3339Nano)),
	})
}

func saying(what happening, now time.Time) *v1.AddonInstallation {
	said := &v1.AddonInstallation{ObjectMeta: metav1.ObjectMeta{
		Namespace: NamespaceOf(what.cluster), Name: what.said, Annotations: map[string]string{v1.AnnotationDigest: what.content},
	}}
	meta.SetStatusCondition(&said.Status.Conditions, metav1.Condition{
		Type: v1.ConditionReady, Status: what.state, Reason: what.reason, LastTransitionTime: metav1.NewTime(now),
	})
	return said
}

// What two leaders write at once, before anything is told of it, holds its place by the first write, no longer and no shorter. Red when
// the second one's time counts.
func TestTwoLeadersHoldAPlaceOnce(t *testing.T) {
	const soak = 5 * time.Second
	for after, want := range map[time.Duration]int{soak: 0, soak - time.Millisecond: 1} {
		moves := NewMoves(Waves{Group: func(string) int { return 0 }, Limits: []int{1}, Soak: soak})
		moves.Begin(1, "a1", "a2")
		log, now := NewLog(moves), time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
		write := func(cluster string, at time.Time) {
			log.add(writing(cluster, "new", at), func() time.Time { return at })
		}
		second := now.Add(time.Millisecond)
		write("a1", now)
		write("a1", second)
		moves.Saved(saying(happening{cluster: "a1", content: "new", said: "web", state: metav1.ConditionTrue, reason: v1.ReasonReady}, second), second)
		write("a2", now.Add(after))
		if got := moves.Complaints(); len(got) != want {
			t.Errorf("after %s: complaints %q", after, got)
		}
	}
}

// A status that was written before the set's last write says nothing of it. Red when annotation digest isn't compared.
func TestAnOldReadyFreesNoPlace(t *testing.T) {
	moves := NewMoves(Waves{Group: func(string) int { return 0 }, Limits: []int{1}})
	moves.Begin(1, "a1", "a2")
	log, now := NewLog(moves), time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	old := saying(happening{cluster: "a1", content: "before", said: "web", state: metav1.ConditionTrue, reason: v1.ReasonReady}, now)
	moves.Saved(old, now)
	log.add(writing("a1", "after", now), func() time.Time { return now })
	moves.Saved(old, now)
	later := now.Add(time.Hour)
	log.add(writing("a2", "after", later), func() time.Time { return later })
	if len(moves.Complaints()) != 1 {
		t.Errorf("complaints %q", moves.Complaints())
	}
}
