package sets_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/gate"
	"github.com/trellis-addons/trellis/test/standins"
	"github.com/trellis-addons/trellis/test/world"
)

const (
	// clustersOfOne is how many Clusters a subject has: the canary, and the rest, of which places move at once.
	clustersOfOne = 4
	places        = 2
	soak          = time.Second
	// labelCase is on the Clusters of a subject, labelIn on those that its set selects.
	labelCase = "case"
	labelIn   = "in"
	patience  = 3 * time.Minute
)

var addons = []string{"dns", "web"}

// platform is one seed for all subjects.
type platform struct {
	clusters *standins.Clusters
	player   *standins.Player
	gate     *gate.Gate
}

func newPlatform(t *testing.T) *platform {
	t.Helper()
	seed := fleet.Shared().Cluster(seedName)
	return &platform{
		clusters: standins.NewClusters(t, seed.Config), gate: gate.New(t, seed),
		player: standins.Play(t, seed.Config, standins.Rule{Of: broken, Act: standins.Act{Fate: standins.RollsBack}}),
	}
}

// broken are installations whose values say so.
func broken(installation *v1.AddonInstallation) bool {
	return installation.Spec.Values != nil && strings.Contains(string(installation.Spec.Values.Raw), "broken")
}

// subject is one set with all that it needs, named after it.
type subject struct {
	*platform
	name   string
	names  []string
	copies standins.Copies
	moves  *standins.Moves
	log    *standins.Log
	// haltsOnItsWay says that the canary fails in its story.
	haltsOnItsWay bool
}

var subjects atomic.Int32

func (p *platform) newSubject(t *testing.T) *subject {
	t.Helper()
	number := int(subjects.Add(1))
	s := &subject{platform: p, name: fmt.Sprintf("k%04dz", number)}
	expect.Create(t, p.clusters.Client(), world.Namespace(s.name))
	s.copies = standins.Copies{Client: p.clusters.Client(), Namespace: s.name}
	first := number * clustersOfOne
	s.names = p.clusters.Make(t, standins.Shape{First: first, Count: clustersOfOne, Labels: func(number int) map[string]string {
		return map[string]string{labelCase: s.name, labelIn: "yes", "ring": strconv.Itoa(min(number-first, 1))}
	}})
	for _, addon := range addons {
		s.copies.Publish(t, addon, v1.AddonVersion{
			Version: "1.0.0", Template: &v1.Template{Method: v1.MethodHelm},
			Source: &v1.Source{Helm: &v1.HelmSource{URL: "https://charts.example", Chart: addon, Version: "1.0.0"}},
		})
	}
	s.moves = standins.NewMoves(standins.Waves{
		Group: func(name string) int { return min(slices.Index(s.names, name), 1) }, Limits: []int{1, places}, Soak: soak, Strict: true,
	})
	s.log = standins.NewLog(s.moves)
	p.player.Notify(s.moves)
	s.copies.KeepOpen(t, s.name, 2)
	return s
}

func (s *subject) spec() v1.AddonSetSpec {
	two, none := intstr.FromInt32(places), intstr.FromInt32(0)
	spec := v1.AddonSetSpec{
		ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{labelCase: s.name, labelIn: "yes"}},
		Rollout: &v1.Rollout{
			Pace: v1.Pace{
				MaxConcurrency: &two, MaxFailures: &none, Soak: &metav1.Duration{Duration: soak},
				ProgressDeadline: &metav1.Duration{Duration: 10 * time.Minute},
			},
			Groups: []v1.RolloutGroup{{
				Name: "canary", ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"ring": "0"}},
			}},
		},
	}
	for _, addon := range addons {
		spec.Addons = append(spec.Addons, v1.AddonSetItem{
			Name: v1.AddonName(addon), AddonRef: v1.AddonReference{Name: v1.AddonName(addon), Version: "1.x"},
			TargetNamespace: addon, Values: value("first"),
		})
	}
	return spec
}

func value(value string) *runtime.RawExtension {
	return &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"value":%q}`, value)}
}

// want gives all items another value.
func (s *subject) want(t *testing.T, wanted string) {
	t.Helper()
	s.copies.Edit(t, s.name, func(spec *v1.AddonSetSpec) {
		for i := range spec.Addons {
			spec.Addons[i].Values = value(wanted)
		}
	})
}

func (s *subject) start(t *testing.T) *fleet.Process {
	t.Helper()
	return standins.Start(t, s.gate, s.name, standins.Assignment{Catalogue: s.name, Clusters: map[string]string{labelCase: s.name}})
}

// says is nil once the set's status speaks of what it is, with that reason.
func (s *subject) says(t *testing.T, reason string) error {
	t.Helper()
	set := s.copies.Get(t, s.name)
	state := metav1.ConditionFalse
	if reason == v1.ReasonComplete {
		state = metav1.ConditionTrue
	}
	if set.Status.ObservedGeneration != set.Generation {
		return fmt.Errorf("the status speaks of generation %d of %d", set.Status.ObservedGeneration, set.Generation)
	}
	return expect.Condition(set, v1.ConditionReady, string(state), reason)
}

// selects is nil once the set's status counts so many clusters.
func (s *subject) selects(t *testing.T, want int32) error {
	t.Helper()
	if counts := s.copies.Get(t, s.name).Status.Counts; counts == nil || counts.Selected != want {
		return fmt.Errorf("the set counts %+v, want %d selected", counts, want)
	}
	return nil
}

// has is nil once exactly these clusters have all items with that value.
func (s *subject) has(t *testing.T, wanted string, clusters ...string) error {
	t.Helper()
	for _, name := range s.names {
		found := s.installations(t, name)
		if !slices.Contains(clusters, name) {
			if len(found) > 0 {
				return fmt.Errorf("cluster %s still has %d installations", name, len(found))
			}
			continue
		}
		if len(found) != len(addons) {
			return fmt.Errorf("cluster %s has %d installations", name, len(found))
		}
		for i := range found {
			if raw := found[i].Spec.Values; raw == nil || !strings.Contains(string(raw.Raw), wanted) {
				return fmt.Errorf("installation %s of cluster %s has not the values %s", found[i].Name, name, wanted)
			}
		}
	}
	return nil
}

func (s *subject) installations(t *testing.T, cluster string) []v1.AddonInstallation {
	t.Helper()
	var list v1.AddonInstallationList
	expect.List(t, s.copies.Client, &list, client.InNamespace(standins.NamespaceOf(cluster)))
	return list.Items
}

// state is what there is in the end, without what differs from run to run: names, times, hashes over names; and, where a canary fails,
// whether an installation was sick before its last move: who was killed between two items of a canary that fails never writes the second one, which is right.
func (s *subject) state(t *testing.T) map[string]string {
	t.Helper()
	state := map[string]string{}
	for _, name := range s.names {
		for _, one := range s.installations(t, name) {
			annotations := maps.Clone(one.Annotations)
			for _, varies := range []string{v1.AnnotationMoved, v1.AnnotationDigest} {
				if annotations[varies] != "" {
					annotations[varies] = "SET"
				}
			}
			if s.haltsOnItsWay {
				delete(annotations, v1.AnnotationSick)
			}
			state["installation "+name+"/"+one.Name] = s.text(t, []any{one.Labels, annotations, one.Finalizers, one.Spec})
		}
	}
	set := &v1.AddonSet{}
	err := s.copies.Client.Get(t.Context(), client.ObjectKey{Namespace: s.name, Name: s.name}, set)
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		t.Fatal(err)
	default:
		ready := slices.IndexFunc(set.Status.Conditions, func(one metav1.Condition) bool { return one.Type == v1.ConditionReady })
		state["set"] = s.text(t, []any{
			set.Finalizers, set.Status.Conditions[ready].Reason, set.Status.Counts, set.Status.Groups, set.Status.Pending, set.Status.Clusters,
		})
	}
	for key, text := range state {
		delete(state, key)
		state[s.anonymous(key)] = s.anonymous(text)
	}
	return state
}

func (s *subject) text(t *testing.T, content any) string {
	t.Helper()
	text, err := json.Marshal(content)
	expect.NoError(t, err)
	return string(text)
}

// anonymous takes the names of this run out of a text.
func (s *subject) anonymous(text string) string {
	pairs := []string{s.name, "SET"}
	for i, name := range s.names {
		pairs = append(pairs, name, "CLUSTER-"+strconv.Itoa(i))
	}
	return strings.NewReplacer(pairs...).Replace(text)
}
