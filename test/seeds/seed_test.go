package seeds_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/gate"
	"github.com/trellis-addons/trellis/test/standins"
	kit "github.com/trellis-addons/trellis/test/world"
)

const (
	// canaries and others are the Clusters of each seed; the others are the last group.
	canaries, others = 3, 2
	labelCase        = "case"
	labelRing        = "ring"
)

// seed is one with Clusters of the test's own.
type seed struct {
	world *world
	name  string
	// names of its Clusters, the canaries first.
	names  []string
	client client.Client
	player *standins.Player
	// reach is the master's way to the seed.
	reach *gate.Gate
	// moves judges the waves of this seed.
	moves   *standins.Moves
	process *fleet.Process
}

func newSeed(w *world, name string, first int) *seed {
	t := w.t
	t.Helper()
	cluster := fleet.Shared().Cluster(name)
	clusters := standins.NewClusters(t, cluster.Config)
	s := &seed{world: w, name: name, client: clusters.Client(), reach: gate.New(t, cluster)}
	expect.Create(t, s.client, kit.Namespace(w.platform), kit.Namespace(w.catalogue))
	s.names = clusters.Make(t, standins.Shape{First: first, Count: canaries + others, Labels: func(number int) map[string]string {
		return map[string]string{labelCase: w.platform, labelRing: strconv.Itoa(min((number-first)/canaries, 1))}
	}})
	s.moves = standins.NewMoves(standins.Waves{Group: w.group, Limits: []int{1, 1}})
	s.player = standins.Play(t, cluster.Config)
	s.player.Notify(s.moves, w.moves)
	return s
}

// start runs the seed's set controller, once the master has brought the key by which it believes the master.
func (s *seed) start() {
	t := s.world.t
	t.Helper()
	key := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.world.platform, Name: v1.SecretCatalogueKey}}
	expect.Object(t, s.client, key, func(*corev1.Secret) error { return nil })
	through := gate.New(t, fleet.Shared().Cluster(s.name))
	through.Watch(s.name, standins.NewLog(s.world.moves).Guard(standins.NewLog(s.moves).Guard(gate.Guard{})))
	s.process = standins.Start(t, through, s.name, standins.Assignment{
		Catalogue: s.world.catalogue, Platform: s.world.platform, Clusters: map[string]string{labelCase: s.world.platform},
	})
}

func (s *seed) canaries() []string { return s.names[:canaries] }
func (s *seed) others() []string   { return s.names[canaries:] }

// copied is the seed's copy of the set.
func (s *seed) copied() *v1.AddonSet {
	s.world.t.Helper()
	return read(s.world.t, s.client, s.world.catalogue)
}

// says is nil once the seed's own status says that.
func (s *seed) says(status metav1.ConditionStatus, reason string) error {
	if err := says(s.copied(), status, reason); err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	return nil
}

// isShut is nil once the seed says that its first group waits for the master, who closed the gate.
func (s *seed) isShut() error {
	set := s.copied()
	if gate := set.Annotations[v1.AnnotationGate]; gate != set.Status.Revision+"/0" {
		return fmt.Errorf("the gate of %s is %q, in revision %q", s.name, gate, set.Status.Revision)
	}
	if groups := set.Status.Groups; len(groups) == 0 || groups[0].State != v1.GroupWaiting {
		return fmt.Errorf("the groups of %s are %+v", s.name, groups)
	}
	return nil
}

// installations of all Clusters of the seed, in the order of their names.
func (s *seed) installations() []v1.AddonInstallation {
	t := s.world.t
	t.Helper()
	var all []v1.AddonInstallation
	for _, name := range s.names {
		var list v1.AddonInstallationList
		expect.List(t, s.client, &list, client.InNamespace(standins.NamespaceOf(name)))
		all = append(all, list.Items...)
	}
	return all
}

func (s *seed) uids() (found []types.UID) {
	s.world.t.Helper()
	for _, one := range s.installations() {
		found = append(found, one.UID)
	}
	return found
}

// have are those of the clusters that were asked for a value.
func (s *seed) have(text string, names []string) (found []string) {
	s.world.t.Helper()
	for _, one := range s.installations() {
		if name := standins.ClusterOf(one.Namespace); slices.Contains(names, name) && asksFor(text)(&one) {
			found = append(found, name)
		}
	}
	return found
}

// moved is nil where so many Clusters of the seed were asked for a value.
func (s *seed) moved(text string, want int) error {
	if found := s.have(text, s.names); len(found) != want {
		return fmt.Errorf("clusters %q of %s have value %s, want %d", found, s.name, text, want)
	}
	return nil
}

// nobodyMoves is nil once the seed says that each cluster that was asked for a value has it, or has failed.
func (s *seed) nobodyMoves(text string) error {
	asked, counts := len(s.have(text, s.names)), s.copied().Status.Counts
	if counts == nil || counts.Moving > 0 || int(counts.Current+counts.Failed) != asked {
		return fmt.Errorf("%s counts %+v, with %d clusters that were asked for value %s", s.name, counts, asked, text)
	}
	return nil
}

// expectNone fails where one of these clusters was asked for a value.
func (s *seed) expectNone(text string, names []string) {
	s.world.t.Helper()
	if found := s.have(text, names); len(found) > 0 {
		s.world.t.Errorf("clusters %q of %s have value %s already", found, s.name, text)
	}
}

func without(names, others []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(others, name) })
}

func asksFor(text string) standins.Selector {
	return func(installation *v1.AddonInstallation) bool {
		return installation.Spec.Values != nil && strings.Contains(string(installation.Spec.Values.Raw), text)
	}
}

// fate is what becomes of these clusters with a value.
func fate(fate standins.Fate, text string, names ...string) standins.Rule {
	return standins.Rule{Of: standins.And(standins.InClusters(names...), asksFor(text)), Act: standins.Act{Fate: fate}}
}
