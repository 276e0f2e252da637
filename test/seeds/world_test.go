package seeds_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/gate"
	"github.com/trellis-addons/trellis/test/given"
	"github.com/trellis-addons/trellis/test/standins"
	kit "github.com/trellis-addons/trellis/test/world"
)

const (
	setName = "everywhere"
	// secretName has values of the platform, in valuesKey.
	secretName, valuesKey = "platform-values", "values.yaml"
	// laterName is a set that a test makes beside the world's own.
	laterName = "later"
	addon     = "web"
	patience  = time.Minute
)

// world is a platform of one test: namespaces and Clusters of its own, a master manager and two seeds.
type world struct {
	t *testing.T
	// platform is the namespace of the set; catalogue that of its copies.
	platform, catalogue string
	master              client.Client
	// hub is the master manager's way to the master.
	hub     *gate.Gate
	manager *fleet.Process
	// killer ends the manager at one of its writes; nil as a rule.
	killer       *gate.Killer
	north, south *seed
	// moves judges the waves of both seeds together: here is seen whether a group waits for the other seed's.
	moves *standins.Moves
}

var worlds int

// newWorld starts all of it, and returns when the set is on both seeds, with value "first" in all Clusters.
func newWorld(t *testing.T, pace v1.Pace) *world {
	t.Helper()
	worlds++
	w := &world{t: t, platform: fmt.Sprintf("platform-%d", worlds), catalogue: fmt.Sprintf("catalogue-%d", worlds)}
	w.master = kit.Client(t, fleet.Shared().Cluster(masterName).Config)
	w.hub = gate.New(t, fleet.Shared().Cluster(masterName))
	expect.Create(t, w.master, kit.Namespace(w.platform))
	w.moves = standins.NewMoves(standins.Waves{Group: w.group, Limits: []int{2, 2}}) // one on each seed
	w.north, w.south = newSeed(w, "north", 100*worlds), newSeed(w, "south", 100*worlds+50)
	w.begin()
	w.startMaster()
	for _, one := range w.seeds() {
		expect.Create(t, w.master, given.SeedSecret(w.platform, one.name, one.reach.Kubeconfig(t, masterName)))
		w.list(one)
		one.start()
	}
	expect.Create(t, w.master, w.authored(), w.secret(), w.set(pace))
	w.expectSet(metav1.ConditionTrue, v1.ReasonComplete)
	w.eventually(func() error {
		return errors.Join(w.north.moved("first", canaries+others), w.south.moved("first", canaries+others))
	})
	return w
}

// startMaster runs the master manager, until it is killed or the test ends.
func (w *world) startMaster() {
	w.t.Helper()
	w.manager = kit.RunMaster(w.t, w.hub.Kubeconfig(w.t, masterName), w.platform, w.catalogue)
}

func (w *world) seeds() []*seed { return []*seed{w.north, w.south} }

// group of a cluster of either seed.
func (w *world) group(name string) int {
	for _, one := range w.seeds() {
		if at := slices.Index(one.names, name); at >= 0 {
			return min(at/canaries, 1)
		}
	}
	return 0
}

// list has the master know a seed.
func (w *world) list(one *seed) {
	w.t.Helper()
	expect.Create(w.t, w.master, given.ListedSeed(w.platform, one.name))
}

// unlist takes a seed off the list.
func (w *world) unlist(one *seed) {
	w.t.Helper()
	expect.Delete(w.t, w.master, given.ListedSeed(w.platform, one.name))
}

func (w *world) authored() *v1.AddonCatalogue {
	source := &v1.Source{Helm: &v1.HelmSource{URL: "https://charts.example", Chart: addon, Version: "1.0.0"}}
	return given.Catalogue(w.platform, "custom", given.Addon(addon, given.Version("1.0.0", source)))
}

// set has a group of canaries, and one place in each group of a seed.
func (w *world) set(pace v1.Pace) *v1.AddonSet {
	pace.MaxConcurrency, pace.Soak = new(intstr.FromInt32(1)), &metav1.Duration{}
	return &v1.AddonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.platform, Name: setName},
		Spec: v1.AddonSetSpec{
			ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{labelCase: w.platform}},
			Addons: []v1.AddonSetItem{{
				Name: addon, AddonRef: v1.AddonReference{Name: addon, Version: "1.x"}, TargetNamespace: addon, Values: value("first"),
				PlatformSecretRef: &v1.PlatformSecretReference{Name: secretName},
			}},
			Rollout: &v1.Rollout{Pace: pace, Groups: []v1.RolloutGroup{{
				Name: "canary", ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{labelRing: strconv.Itoa(0)}},
			}}},
		},
	}
}

// secret has values of the platform, which each seed gets a copy of.
func (w *world) secret() *corev1.Secret {
	made := given.MarkedSecret(v1.UseValues, w.platform, secretName, map[string][]byte{valuesKey: []byte("secret: first\n")})
	made.Annotations = map[string]string{v1.AnnotationUsedBy: "AddonSet/" + setName + ",AddonSet/" + laterName}
	return made
}

func value(text string) *runtime.RawExtension {
	return &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"value":%q}`, text)}
}

// pace of a set that bears so many failures, and whose moves have that long.
func pace(failures int32, deadline time.Duration) v1.Pace {
	return v1.Pace{MaxFailures: new(intstr.FromInt32(failures)), ProgressDeadline: &metav1.Duration{Duration: deadline}}
}

// begin has all waves judged anew: all Clusters of both seeds are behind.
func (w *world) begin() {
	w.moves.Begin(1, slices.Concat(w.north.names, w.south.names)...)
	for _, one := range w.seeds() {
		one.moves.Begin(1, one.names...)
	}
}

// halt says that from now on nobody may begin to move.
func (w *world) halt() {
	w.moves.Halt()
	for _, one := range w.seeds() {
		one.moves.Halt()
	}
}

// leaveOut says that nobody waits for the clusters of a seed; its own waves are judged as before.
func (w *world) leaveOut(one *seed) {
	for _, name := range one.names {
		w.moves.Away(name)
	}
}

// roll has all Clusters of both seeds get another value.
func (w *world) roll(text string) {
	w.t.Helper()
	w.begin()
	w.edit(func(spec *v1.AddonSetSpec) { spec.Addons[0].Values = value(text) })
}

func (w *world) edit(change func(*v1.AddonSetSpec)) {
	w.t.Helper()
	expect.Change(w.t, w.master, w.read(), func(set *v1.AddonSet) { change(&set.Spec) })
}

func (w *world) read() *v1.AddonSet {
	w.t.Helper()
	return read(w.t, w.master, w.platform)
}

func read(t *testing.T, from client.Client, namespace string) *v1.AddonSet {
	t.Helper()
	set := &v1.AddonSet{}
	expect.Get(t, from, client.ObjectKey{Namespace: namespace, Name: setName}, set)
	return set
}

// eventually waits, as long as the programs that should run do.
func (w *world) eventually(holds func() error) {
	w.t.Helper()
	expect.Eventually(w.t, patience, func() error {
		w.revive()
		for _, one := range w.seeds() {
			if one.process != nil && one.process.Failure() != nil {
				w.t.Fatal(one.process.Failure())
			}
		}
		return holds()
	})
}

// expectSet waits for what the set says on the master.
func (w *world) expectSet(status metav1.ConditionStatus, reason string) {
	w.t.Helper()
	w.eventually(func() error { return says(w.read(), status, reason) })
}

// says is nil where a set says that of its present generation.
func says(set *v1.AddonSet, status metav1.ConditionStatus, reason string) error {
	if set.Status.ObservedGeneration != set.Generation {
		return fmt.Errorf("the status speaks of generation %d of %d", set.Status.ObservedGeneration, set.Generation)
	}
	return expect.Condition(set, v1.ConditionReady, string(status), reason)
}

// expectWaves fails where the waves were not kept to, by one seed or by both together.
func (w *world) expectWaves() {
	w.t.Helper()
	for _, complaint := range slices.Concat(w.moves.Complaints(), w.north.moves.Complaints(), w.south.moves.Complaints()) {
		w.t.Errorf("the waves were not kept to: %s", complaint)
	}
}
