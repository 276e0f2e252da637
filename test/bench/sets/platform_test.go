package sets_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/gate"
	"github.com/trellis-addons/trellis/test/given"
	"github.com/trellis-addons/trellis/test/standins"
	"github.com/trellis-addons/trellis/test/world"
)

const (
	namespace = "addon-catalogue"
	setName   = "everywhere"
	manager   = "seed-manager"
	// patience for a roll-out on a machine that has other things to do.
	patience = 30 * time.Minute
)

// addons are what the three items install.
var addons = []string{"dns", "logs", "web"}

// size is how large a simulation is.
type size struct {
	clusters int
	// places are how many clusters move at once, by group.
	places [4]intstr.IntOrString
	// soak, and how long an installation takes until it is Ready.
	soak, takes time.Duration
	// rest is how long nothing may happen.
	rest time.Duration
}

// ring of a cluster: one of a hundred in the first group, 9 in the second, 30 in the third.
func ring(number int) int {
	switch place := number % 100; {
	case place == 0:
		return 0
	case place < 10:
		return 1
	case place < 40:
		return 2
	default:
		return 3
	}
}

// limits are what places come to, by rounding up.
func (s size) limits() []int {
	sizes, limits := [4]int{}, []int{}
	for number := range s.clusters {
		sizes[ring(number)]++
	}
	for i, places := range s.places {
		limit, err := intstr.GetScaledValueFromIntOrPercent(&places, sizes[i], true)
		if err != nil {
			panic(err)
		}
		limits = append(limits, limit)
	}
	return limits
}

// platform is a seed with Clusters and one set.
type platform struct {
	size
	names  []string
	copies standins.Copies
	player *standins.Player
	moves  *standins.Moves
	log    *standins.Log
	stored *stored
	gate   *gate.Gate
	// process is the manager's.
	process *fleet.Process
}

func newPlatform(t testing.TB, size size) *platform {
	t.Helper()
	seed := fleet.Shared().Cluster("seed")
	clusters := standins.NewClusters(t, seed.Config)
	p := &platform{size: size, gate: gate.New(t, seed), copies: standins.Copies{Client: clusters.Client(), Namespace: namespace}}
	expect.Create(t, clusters.Client(), world.Namespace(namespace))
	p.stored = follow(t, seed.Config)
	begin, rings := time.Now(), map[string]int{}
	p.names = clusters.Make(t, standins.Shape{Count: size.clusters, Labels: func(number int) map[string]string {
		return map[string]string{"ring": strconv.Itoa(ring(number))}
	}})
	for number, name := range p.names {
		rings[name] = ring(number)
	}
	t.Logf("%d Clusters were made in %s", size.clusters, time.Since(begin).Round(time.Second))
	p.moves = standins.NewMoves(standins.Waves{
		Group: func(name string) int { return rings[name] }, Limits: size.limits(), Soak: size.soak,
	})
	p.log = standins.NewLog(p.moves)
	p.player = standins.Play(t, seed.Config, standins.Rule{Act: standins.Act{Takes: size.takes}})
	p.player.Notify(p.moves)
	p.gate.Watch(manager, p.log.Guard(gate.Guard{}))
	for _, addon := range addons {
		p.copies.Publish(t, addon, version("1.0.0", "first"))
	}
	p.start(t)
	return p
}

func (p *platform) start(t testing.TB) {
	t.Helper()
	p.process = standins.Start(t, p.gate, manager, standins.Assignment{Catalogue: namespace})
}

// version has content that is fixed: of anything else nobody could say what it is.
func version(number, content string) v1.AddonVersion {
	return given.Version(number, &v1.Source{Helm: &v1.HelmSource{URL: "https://charts.example", Chart: content, Version: number}})
}

// spec is the set: all clusters, three items, four groups.
func (p *platform) spec() v1.AddonSetSpec {
	none := intstr.FromInt32(0)
	spec := v1.AddonSetSpec{
		ClusterSelector: &metav1.LabelSelector{},
		Rollout: &v1.Rollout{Pace: v1.Pace{
			MaxConcurrency: &p.places[3], MaxFailures: &none, Soak: &metav1.Duration{Duration: p.soak},
			ProgressDeadline: &metav1.Duration{Duration: 10 * time.Minute},
		}},
	}
	for i, name := range []v1.AddonName{"canary", "early", "main"} {
		spec.Rollout.Groups = append(spec.Rollout.Groups, v1.RolloutGroup{
			Name: name, ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"ring": strconv.Itoa(i)}},
			Pace: v1.Pace{MaxConcurrency: &p.places[i]},
		})
	}
	for _, addon := range addons {
		spec.Addons = append(spec.Addons, v1.AddonSetItem{
			Name: v1.AddonName(addon), AddonRef: v1.AddonReference{Name: v1.AddonName(addon), Version: "1.x"},
			TargetNamespace: addon, CreateNamespace: true, Values: values(1),
		})
	}
	return spec
}

func values(replicas int) *runtime.RawExtension {
	return &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"replicas":%d}`, replicas)}
}

// settled waits until the set says that everything is as it is to be, in another revision than before.
func (p *platform) settled(t testing.TB, before string) string {
	t.Helper()
	var revision string
	expect.Eventually(t, patience, func() error {
		expect.NoError(t, p.process.Failure())
		set := p.copies.Get(t, setName)
		if complaints := p.moves.Complaints(); len(complaints) > 0 {
			t.Fatalf("the waves were not kept to: %q", complaints)
		}
		revision = set.Status.Revision
		if revision == before || set.Status.ObservedGeneration != set.Generation || set.Status.Counts == nil ||
			int(set.Status.Counts.Current) != p.clusters {
			return fmt.Errorf("revision %q, generation %d of %d, counts %+v",
				revision, set.Status.ObservedGeneration, set.Generation, set.Status.Counts)
		}
		return expect.Condition(set, v1.ConditionReady, string(metav1.ConditionTrue), v1.ReasonComplete)
	})
	return revision
}

// expectWritten compares the writes since a mark with what is to be written: these items in every cluster, each once. Once is once in the
// API server, by annotation moved, and one request that the controller got a good answer to at most, with none after it. Only a request
// without a good answer may be made again, and then the first must not have arrived: the controller asks first. On a machine that is busy
// answers do come later than it waits for them.
func (p *platform) expectWritten(t testing.TB, story string, mark int, since time.Time, items ...string) {
	t.Helper()
	took := time.Since(since)
	p.stored.await(t, p.names, items, since)
	counts, applied := p.log.Count(mark), map[string][]int{}
	again := 0 // requests after one that had no good answer
	for _, write := range p.log.Since(mark) {
		if write.Installation != "" && !write.IsStatus {
			what := write.Cluster + "/" + write.Installation
			applied[what] = append(applied[what], write.Code)
		}
	}
	for _, name := range p.names {
		for _, item := range items {
			codes := applied[name+"/"+item]
			if moves := p.stored.since(name+"/"+item, since); moves != 1 || len(codes) == 0 {
				t.Errorf("%s: %s of cluster %s was moved %d times, not once: the answers were %v", story, item, name, moves, codes)
			}
			for _, code := range codes[:max(len(codes)-1, 0)] {
				again++
				if code != 0 && code < http.StatusInternalServerError && code != http.StatusTooManyRequests {
					t.Errorf("%s: %s of cluster %s was written again after a good answer: %v", story, item, name, codes)
				}
			}
			delete(applied, name+"/"+item)
		}
	}
	if len(applied) > 0 {
		t.Errorf("%s: writes of installations that don't change: %d, such as %q", story, len(applied), slices.Sorted(maps.Keys(applied))[0])
	}
	if most := int(took/(2*time.Second)) + 3; counts.Statuses > most {
		t.Errorf("%s: the set's status was written %d times in %s: at most every 2 s is %d", story, counts.Statuses, took, most)
	}
	t.Logf("%s: %d installations applied (%d of them again), %d deleted, %d writes of the set's status and %d others, in %s",
		story, counts.Applied, again, counts.Deleted, counts.Statuses, counts.Others, took.Round(100*time.Millisecond))
}
