package upgrades_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	capiv1 "github.com/trellis-addons/trellis/apis/clusterapi/v1"
	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/fleet/upgrade"
	"github.com/trellis-addons/trellis/test/clusterapi"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/gate"
	"github.com/trellis-addons/trellis/test/given"
	"github.com/trellis-addons/trellis/test/standins"
	"github.com/trellis-addons/trellis/test/world"
)

const (
	before, after = "v1.36.3", "v1.37.2"
	// clusterName is that of each subject's Cluster.
	clusterName = "one"
	patience    = time.Minute
	// soak is how long an installation of a set has to be Ready.
	soak = 500 * time.Millisecond
)

// The two gates. The network is of a set per release, storage is on the core list, in a range.
const (
	network, storage = clusterName + ".cni", clusterName + ".csi"
	// bridging is the version of both that fits before and after, last the version of storage that fits after alone.
	bridging, last = "1.1.0", "2.0.0"
)

// platform is one management cluster for all subjects.
type platform struct {
	client client.WithWatch
	live   cluster.LiveReader
	gate   *gate.Gate
}

// platforms are made one after the other: all install the same kinds.
var platforms sync.Mutex

func newPlatform(t *testing.T) *platform {
	t.Helper()
	platforms.Lock()
	defer platforms.Unlock()
	management := fleet.Shared().Cluster(managementName)
	expect.NoError(t, clusterapi.InstallCRDs(t.Context(), management.Config))
	p := &platform{client: world.Client(t, management.Config), gate: gate.New(t, management)}
	made := world.SeedOf(t, management.Config, "nowhere", standins.ClusterAPI)
	made.Run()
	p.live = made.Clusters
	return p
}

// subject is one Cluster with all that it needs, named after it: a namespace for it, and one for catalogues, sets and the core list.
type subject struct {
	*platform
	name, catalogue string
	key             types.NamespacedName
	uid             types.UID
	rules           upgrade.Rules
	log             *standins.Log
	player          *player
	// existing are the UIDs of the installations when the upgrade was asked for, and from is how long the log was.
	existing map[string]types.UID
	from     int
}

var subjects atomic.Int32

func (p *platform) newSubject(t *testing.T) *subject {
	t.Helper()
	name := fmt.Sprintf("u%04dz", subjects.Add(1))
	s := &subject{
		platform: p, name: name, catalogue: name + "-offers", key: types.NamespacedName{Namespace: name, Name: clusterName},
		rules: upgrade.Rules{Hold: true, Timeout: time.Hour}, log: standins.NewLog(nil),
	}
	expect.Create(t, p.client, world.Namespace(s.name), world.Namespace(s.catalogue))
	s.offer(t)
	s.gate.Watch(s.name, s.log.Guard(gate.Guard{}))
	s.make(t)
	s.player = play(t, s)
	return s
}

// offer has the merged catalogues, a set for each of two releases, and the core list.
func (s *subject) offer(t *testing.T) {
	t.Helper()
	expect.Create(t, s.client,
		s.entry(t, v1.CatalogueCustom, "cni", v1.SlotCNI, "1.0.0", "< 1.37", bridging, ">= 1.36, < 1.38"),
		s.entry(t, v1.CatalogueCore, "csi", v1.SlotCSI, bridging, ">= 1.36, < 1.38", last, "~1.37"),
		given.CoreList(s.catalogue, "- {name: csi, addonRef: {name: csi, version: '>= 1.0'}, targetNamespace: kube-system}\n"))
	copies := standins.Copies{Client: s.client, Namespace: s.catalogue}
	for release, version := range map[string]string{"36": "1.0.0", "37": bridging} {
		copies.Put(t, "release-"+release, v1.AddonSetSpec{
			ClusterSelector: &metav1.LabelSelector{}, Constraints: &v1.Constraints{K8sVersion: v1.VersionRange("~1." + release)},
			Rollout: &v1.Rollout{Pace: v1.Pace{Soak: &metav1.Duration{Duration: soak}}},
			Addons: []v1.AddonSetItem{{
				Name: "cni", AddonRef: v1.AddonReference{Name: "cni", Version: version}, TargetNamespace: "kube-system",
			}},
		})
	}
}

// entry is a merged catalogue, with pairs of a version and of what it fits.
func (s *subject) entry(t *testing.T, of v1.CatalogueType, name string, slot v1.Slot, pairs ...string) *v1.AddonCatalogue {
	t.Helper()
	addon, origins := v1.Addon{Name: v1.AddonName(name), Slot: slot}, map[string]catalogue.Origin{}
	for pair := range slices.Chunk(pairs, 2) {
		origins[pair[0]] = catalogue.Origin{Digest: "sha256:" + name + pair[0]}
		addon.Versions = append(addon.Versions, v1.AddonVersion{
			Version: pair[0], Constraints: &v1.Constraints{K8sVersion: v1.VersionRange(pair[1])},
			Template: &v1.Template{Method: v1.MethodGoTemplate},
			Source:   &v1.Source{Git: &v1.GitSource{Remote: "https://git.example.com/addon", Ref: &v1.GitRef{Tag: "v1"}}},
		})
	}
	return given.WithOrigins(given.Merged(s.catalogue, of, addon), origins)
}

// make makes the Cluster as Cluster API has one that is up: two pools of one kind and one of the other.
func (s *subject) make(t *testing.T) {
	t.Helper()
	plane := object(clusterapi.ControlPlaneKind, s.key)
	plane.SetLabels(map[string]string{clusterapi.Group + "/cluster-name": clusterName})
	plane.Object["spec"] = map[string]any{"version": before}
	made := clusterapi.Cluster{
		Namespace: s.key.Namespace, Name: s.key.Name, Version: before, Deployments: []string{"a", "b"}, Pools: []string{"p"},
		Labels: map[string]string{kkpv1.LabelWorkerName: s.name},
	}.Object()
	reference := map[string]any{"apiGroup": clusterapi.ControlPlaneGroup, "kind": clusterapi.ControlPlaneKind.Kind, "name": clusterName}
	expect.NoError(t, unstructured.SetNestedMap(made.Object, reference, "spec", "controlPlaneRef"))
	expect.Create(t, s.client, plane, s.pool(clusterapi.MachineDeploymentKind, "a"), s.pool(clusterapi.MachineDeploymentKind, "b"),
		s.pool(clusterapi.MachinePoolKind, "p"), made)
	s.uid = made.GetUID()
	made.Object["status"] = map[string]any{
		"initialization": map[string]any{"controlPlaneInitialized": true}, "controlPlane": map[string]any{"versions": versions(before)},
	}
	expect.UpdateStatus(t, s.client, made)
}

func (s *subject) cluster(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	found := object(clusterapi.ClusterKind, s.key)
	expect.Get(t, s.client, s.key, found)
	return found
}

func (s *subject) ref() target.Ref {
	return target.Ref{Kind: target.KindClusterAPI, Namespace: s.key.Namespace, Name: s.key.Name, UID: s.uid}
}

func (s *subject) available(t *testing.T) (*v1.AddonCatalogue, error) {
	t.Helper()
	found := &v1.AddonCatalogue{}
	return found, s.client.Get(t.Context(), cluster.AvailableOf(s.ref()), found)
}

// start starts the controllers in a process of their own, which may do as they like.
func (s *subject) start(t *testing.T) *fleet.Process {
	t.Helper()
	return s.startAs(t, s.name, "")
}

func (s *subject) startAs(t *testing.T, who, lease string) *fleet.Process {
	t.Helper()
	return standins.Start(t, s.gate, who, standins.Assignment{
		Catalogue: s.catalogue, Lease: lease, Upgrades: &standins.Upgrades{Worker: s.name, Rules: s.rules},
	})
}

// rests is nil once no upgrade is pending, the hook is on and the gates are right, at these versions of Kubernetes, network and storage.
func (s *subject) rests(t *testing.T, kubernetes, ofNetwork, ofStorage string) error {
	t.Helper()
	spread, err := clusterapi.Versions(t.Context(), s.client, s.key)
	if err != nil {
		return err
	}
	for _, got := range []string{spread.ControlPlane, spread.Deployments["a"], spread.Deployments["b"], spread.Pools["p"]} {
		if got != kubernetes {
			return fmt.Errorf("versions are %+v", spread)
		}
	}
	if now := holdsOf(s.cluster(t)); !now.Hook || now.Workers || now.isPending {
		return fmt.Errorf("the Cluster has %+v", now)
	}
	want := map[string]string{network: ofNetwork, storage: ofStorage}
	if err := s.player.lack(t.Context(), want, strings.TrimPrefix(kubernetes, "v")); err != nil {
		return err
	}
	found, err := s.available(t)
	if err != nil {
		return err
	}
	return errors.Join(expect.Condition(found, v1.ConditionUpgradeHeld, "False", v1.ReasonNotUpgrading),
		expect.Condition(found, v1.ConditionAddonsReady, "True", ""), s.setsRest(t))
}

// setsRest is nil once the sets have said their last word.
func (s *subject) setsRest(t *testing.T) error {
	t.Helper()
	copies := standins.Copies{Client: s.client, Namespace: s.catalogue}
	for _, name := range []string{"release-36", "release-37"} {
		set := copies.Get(t, name)
		if err := expect.Condition(set, v1.ConditionReady, "True", ""); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// atRest waits for the beginning of each story, and takes down what stood there.
func (s *subject) atRest(t *testing.T, process *fleet.Process) {
	t.Helper()
	expect.Eventually(t, patience, func() error {
		return errors.Join(process.Failure(), s.rests(t, before, "1.0.0", bridging), s.player.failure())
	})
	s.existing, s.from = map[string]types.UID{}, s.log.Mark()
	for _, one := range s.installations(t) {
		s.existing[one.Name] = one.UID
	}
	s.player.begin()
}

func (s *subject) ask(t *testing.T) {
	t.Helper()
	expect.NoError(t, clusterapi.SetVersion(t.Context(), s.client, s.key, after))
}

func (s *subject) installations(t *testing.T) []v1.AddonInstallation {
	t.Helper()
	var list v1.AddonInstallationList
	expect.List(t, s.client, &list, client.InNamespace(s.key.Namespace))
	return list.Items
}

// state is what there is in the end, without what differs from run to run: names, times, hashes over names.
func (s *subject) state(t *testing.T) map[string]string {
	t.Helper()
	of := s.cluster(t)
	state := map[string]string{"cluster": s.text(t, []any{of.GetAnnotations(), of.Object["spec"], of.Object["status"]})}
	for _, one := range s.installations(t) {
		for _, varies := range []string{v1.AnnotationMoved, v1.AnnotationDigest} {
			if one.Annotations[varies] != "" {
				one.Annotations[varies] = "SET"
			}
		}
		state["installation "+one.Name] = s.text(t, []any{
			one.Labels, one.Annotations, one.Finalizers, one.Spec, one.Generation, one.Status.Version, one.UID == s.existing[one.Name],
		})
	}
	available, err := s.available(t)
	expect.NoError(t, err)
	held := meta.FindStatusCondition(available.Status.Conditions, v1.ConditionUpgradeHeld)
	ready := meta.FindStatusCondition(available.Status.Conditions, v1.ConditionAddonsReady)
	state["available"] = s.text(t, []any{
		available.Spec, held.Status, held.Reason, held.Message, ready.Status, ready.Reason, available.Status.Core,
	})
	copies := standins.Copies{Client: s.client, Namespace: s.catalogue}
	for _, name := range []string{"release-36", "release-37"} {
		set := copies.Get(t, name)
		state[name] = s.text(t, []any{set.Finalizers, set.Status.Counts, set.Status.Clusters})
	}
	return state
}

func (s *subject) text(t *testing.T, content any) string {
	t.Helper()
	text, err := json.Marshal(content)
	expect.NoError(t, err)
	return strings.ReplaceAll(string(text), s.name, "SUBJECT")
}

// clusterWrites are those of the Cluster since the upgrade was asked for that the API server took, or may have taken: who was killed got no
// answer.
func (s *subject) clusterWrites() int {
	count := 0
	for _, write := range s.log.Since(s.from) {
		if isOfCluster(write.Call) && (write.Code == 200 || write.Code == 0) {
			count++
		}
	}
	return count
}

func isOfCluster(call gate.Call) bool {
	return strings.HasPrefix(call.Path, "/apis/"+capiv1.Group+"/") && strings.HasSuffix(call.Path, "/clusters/"+clusterName)
}
