package charts

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	kit "github.com/trellis-addons/trellis/test/world"
)

// bothCharts are those that go first, and those that go after them.
var bothCharts = []string{"trellis-master", "trellis-seed"}

// TestChartsAreInstalledAgain: on a cluster whose aggregation controller works, both charts are installed and removed by Helm three times
// in a row; one removal is refused before, since something is left. Red when an install is refused over a role that came back, when a role
// of a removed chart is there after the controller saw its end, when the guard does not tell which roles it deleted, and when it deletes
// one although it refuses. Without the deletion, in nearly every run.
func TestChartsAreInstalledAgain(t *testing.T) {
	const name = "again"
	where := fleet.ForTest(t, fleet.ClusterOptions{Name: name, Controllers: true}).Cluster(name)
	c := kit.Client(t, where.Config)
	expect.Create(t, c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	played := playJobs(t, where, c)
	markers := newMarkers(t, c)
	expect.Create(t, c, listedForAgents("listed", kubermaticv1.AgentsCore, "gadgets"))
	for round := range 3 {
		for _, chart := range bothCharts {
			// The kinds are there: without the Job for them.
			arguments := []string{"install", chart, chartFolder(t, chart), "--set", "crds.upgrade=false"}
			if chart == "trellis-seed" {
				arguments = append(arguments, "--set", "agents.enabled=true,agents.hub.server=https://hub.example.com")
			}
			mustHelm(t, where, arguments...)
		}
		expectGathered(t, c)
		if round == 0 {
			expectRolesOfARefusal(t, where, c)
		}
		for _, chart := range bothCharts {
			mustHelm(t, where, "uninstall", chart)
			for _, role := range gatheringAgents(chart) {
				if reported := played.Output(chart + "-removal"); !strings.Contains(reported, fmt.Sprintf("ClusterRole %q is deleted", role)) {
					t.Errorf("the removal does not say that %s is gone, and told:\n%s", role, reported)
				}
			}
		}
		markers.pass(t, c, round)
		if left := rolesOf(t, c); len(left) > 0 {
			t.Errorf("round %d: both charts are removed, and roles are there: %q", round, left)
		}
	}
}

// gathering are the names of a chart's roles that gather others.
func gathering(chart string) (names []string) {
	for _, of := range handedOut {
		if of.chart == chart {
			names = append(names, namespace+":"+chart+":"+of.role)
		}
	}
	return names
}

// gatheringAgents are those and the one that gathers what agents may be given, where a chart has it.
func gatheringAgents(chart string) []string {
	if chart == "trellis-seed" {
		return append(gathering(chart), namespace+":"+chart+":agents")
	}
	return gathering(chart)
}

// expectGathered waits until the aggregation controller filled the roles of both charts.
func expectGathered(t *testing.T, c client.Client) {
	t.Helper()
	for _, name := range slices.Concat(gatheringAgents(bothCharts[0]), gatheringAgents(bothCharts[1])) {
		expect.Object(t, c, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}, func(role *rbacv1.ClusterRole) error {
			if role.AggregationRule == nil || len(role.Rules) == 0 {
				return fmt.Errorf("it gathers %v, and has the rules %v", role.AggregationRule, role.Rules)
			}
			return nil
		})
	}
}

// expectRolesOfARefusal holds that a removal which is refused leaves all roles as they are.
func expectRolesOfARefusal(t *testing.T, where *fleet.Cluster, c client.Client) {
	t.Helper()
	set, chart := mistakes()[circleMistake], bothCharts[0]
	expect.Create(t, c, set)
	if output, err := helm(t, where, "uninstall", chart); err == nil {
		t.Errorf("%s is removed although a set is left:\n%s", chart, output)
	}
	expectGathered(t, c)
	expect.Delete(t, c, set)
}

// rolesOf are the ClusterRoles of both charts.
func rolesOf(t *testing.T, c client.Client) (names []string) {
	t.Helper()
	var found rbacv1.ClusterRoleList
	expect.List(t, c, &found)
	for _, role := range found.Items {
		if strings.HasPrefix(role.Name, namespace+":") {
			names = append(names, role.Name)
		}
	}
	return names
}

// markers tell how far the aggregation controller is: a role that gathers others of the test alone.
type markers struct{ gathers *rbacv1.ClusterRole }

const markerLabel = "test.example.com/marker"

func newMarkers(t *testing.T, c client.Client) markers {
	t.Helper()
	selector := metav1.LabelSelector{MatchLabels: map[string]string{markerLabel: "true"}}
	made := &rbacv1.ClusterRole{
		ObjectMeta:      metav1.ObjectMeta{Name: "markers"},
		AggregationRule: &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{selector}},
	}
	expect.Create(t, c, made)
	return markers{made}
}

// pass waits until the controller did what came to it before now: it sees changes in their order, and two of them take it twice through
// all that it has to do.
func (m markers) pass(t *testing.T, c client.Client, round int) {
	t.Helper()
	for half := range 2 {
		name := strconv.Itoa(2*round + half)
		expect.Create(t, c, &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: "marker-" + name, Labels: map[string]string{markerLabel: "true"}},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{group}, Resources: []string{"marker-" + name}, Verbs: []string{"get"}}},
		})
		expect.Object(t, c, m.gathers, func(role *rbacv1.ClusterRole) error {
			if !slices.ContainsFunc(role.Rules, func(rule rbacv1.PolicyRule) bool { return slices.Contains(rule.Resources, "marker-"+name) }) {
				return fmt.Errorf("it has not gathered %q yet", name)
			}
			return nil
		})
	}
}

// TestARemovalMayDeleteWhatGathersAlone: red when the account of the guard may delete another role than those of its chart that gather, may
// not delete one of them, is not told of one, or has any of that where the chart brings no roles.
func TestARemovalMayDeleteWhatGathersAlone(t *testing.T) {
	without := map[string]any{"roles": map[string]any{"enabled": false}}
	agentsAlone := map[string]any{"roles": without["roles"], "agents": withAgents["agents"]}
	for _, test := range []struct {
		chart  string
		values map[string]any
		want   []string
	}{
		{"trellis-master", nil, gathering("trellis-master")}, {"trellis-master", without, nil},
		{"trellis-seed", nil, gathering("trellis-seed")}, {"trellis-seed", without, nil},
		{"trellis-seed", withAgents, gatheringAgents("trellis-seed")}, {"trellis-seed", agentsAlone, []string{namespace + ":trellis-seed:agents"}},
	} {
		chart, values := test.chart, test.values
		_, objects := render(t, rendering{chart: chart, values: values})
		var gathers, mayDelete []string
		reported := ""
		for _, object := range objects {
			one := []*unstructured.Unstructured{object}
			switch {
			case object.GetKind() == "Job" && object.GetName() == chart+"-removal":
				reported = fmt.Sprint(object.Object["spec"])
			case object.GetKind() != "ClusterRole":
			case typed[rbacv1.ClusterRole](t, one, "ClusterRole").AggregationRule != nil:
				gathers = append(gathers, object.GetName())
			case object.GetName() == namespace+":"+chart+"-removal":
				mayDelete = deletable(t, one)
			}
		}
		slices.Sort(gathers)
		if !slices.Equal(gathers, slices.Sorted(slices.Values(test.want))) || !slices.Equal(gathers, mayDelete) {
			t.Errorf("%s with %v: %q gather, and the guard may delete %q", chart, values, gathers, mayDelete)
		}
		list := strings.Join(test.want, ",")
		if strings.Contains(reported, "--task-cluster-roles="+list) != (list != "") {
			t.Errorf("%s with %v: the guard is to be told of %q, and has %s", chart, values, list, reported)
		}
	}
}

// TestTheWayOutNamesAllRolesThatGather: red when a role is missing where the page tells what to delete after a removal without the guard.
func TestTheWayOutNamesAllRolesThatGather(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "spec", "operation.md"))
	expect.NoError(t, err)
	for _, chart := range bothCharts {
		prefix := namespace + ":" + chart + ":"
		var roles []string
		for _, name := range gatheringAgents(chart) {
			roles = append(roles, strings.TrimPrefix(name, prefix))
		}
		slices.Sort(roles)
		if words := prefix + "{" + strings.Join(roles, ",") + "}"; !strings.Contains(string(page), words) {
			t.Errorf("the page does not have %s", words)
		}
	}
}

// deletable are the names of roles that a role lets one delete, and nothing else that has to do with roles.
func deletable(t *testing.T, role []*unstructured.Unstructured) (names []string) {
	t.Helper()
	for _, rule := range rules(t, role) {
		if !slices.Contains(rule.APIGroups, rbacv1.GroupName) {
			continue
		}
		ofRoles := slices.Equal(rule.Resources, []string{"clusterroles"}) && len(rule.ResourceNames) > 0
		if !ofRoles || !slices.Equal(rule.Verbs, []string{"delete"}) {
			t.Errorf("%s has the rule %v", role[0].GetName(), rule)
		}
		names = append(names, rule.ResourceNames...)
	}
	slices.Sort(names)
	return names
}
